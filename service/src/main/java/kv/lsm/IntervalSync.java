package kv.lsm;

import java.io.IOException;
import java.time.Duration;

/// [WalMode#INTERVAL]: syncs all logs every so often, the oldest first, so that a durable record never follows
/// one that is not.
final class IntervalSync {
    private final Views views;
    private final WalSync walSync;
    private final Failure failure;
    private final long intervalMillis;
    private final Thread thread;
    private boolean stopping;

    IntervalSync(Views views, WalSync walSync, Failure failure, Duration interval) {
        this.views = views;
        this.walSync = walSync;
        this.failure = failure;
        intervalMillis = interval.toMillis();
        thread = Threads.start("kv-wal-sync", this::run);
    }

    private void run() {
        // a store that failed for another reason has acknowledged writes, too
        while (waitForInterval() && !walSync.hasFailed()) {
            syncAll();
        }
    }

    private synchronized boolean waitForInterval() {
        long end = System.nanoTime() + Duration.ofMillis(intervalMillis).toNanos();
        for (long left; !stopping && (left = end - System.nanoTime()) > 0; ) {
            try {
                wait(left / 1_000_000, (int) (left % 1_000_000));
            } catch (InterruptedException e) {
                throw new AssertionError("nobody interrupts the store's threads", e);
            }
        }
        return !stopping;
    }

    private void syncAll() {
        ReadView view = views.retain();
        try {
            for (Memtable memtable : view.memtablesOldestFirst()) {
                if (!memtable.isReplayed()) {
                    walSync.sync(memtable);
                }
            }
            // or nothing would be synced any more and nobody would know
        } catch (IOException | RuntimeException | Error e) {
            failure.set("a write-ahead log could not be synced", e);
        } finally {
            view.release();
        }
    }

    void stop() {
        synchronized (this) {
            stopping = true;
            notifyAll();
        }
        Threads.join(thread);
    }
}
