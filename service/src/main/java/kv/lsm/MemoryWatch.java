package kv.lsm;

import java.util.OptionalLong;
import kv.lsm.table.SSTable;

/// The thread that looks once a second whether the tables fit into memory, and tells them. While they would fit
/// and reads miss some of their pages, as after a start, it brings them in, each table once; and once more when
/// they have been cold again.
final class MemoryWatch {
    private static final long LOOK_MILLIS = 1_000;
    private static final long LOOK_NANOS = LOOK_MILLIS * 1_000_000;

    private final MemoryFit fit;
    private final Views views;
    private final Counters counters;
    private final Thread thread;
    /// Only for the thread.
    private final WarmedTables warmed = new WarmedTables();
    private volatile boolean stopping;

    MemoryWatch(MemoryFit fit, Views views, Counters counters) {
        this.fit = fit;
        this.views = views;
        this.counters = counters;
        look(true);
        thread = Threads.start("kv-memory", this::run);
    }

    private void run() {
        while (!stopping) {
            if (!(fit.isWorthWarming() && warm())) {
                await();
            }
            if (!stopping) {
                look(true);
            }
            warmed.foundIn(fit.state());
        }
    }

    private synchronized void await() {
        long end = System.nanoTime() + LOOK_NANOS;
        for (long left; !stopping && (left = end - System.nanoTime()) > 0; ) {
            try {
                wait(left / 1_000_000, (int) (left % 1_000_000));
            } catch (InterruptedException e) {
                throw new AssertionError("nobody interrupts the store's threads", e);
            }
        }
    }

    /// Brings tables in until it is time for another look; false when there was none left.
    private boolean warm() {
        long end = System.nanoTime() + LOOK_NANOS;
        ReadView view = retainOrNull();
        if (view == null) {
            return false;
        }
        try {
            while (!stopping && System.nanoTime() - end < 0) {
                OptionalLong next = warmed.next(view.openTables().keySet());
                if (next.isEmpty()) {
                    return false;
                }
                view.table(next.getAsLong()).warm(() -> stopping);
            }
            return true;
        } finally {
            view.release();
        }
    }

    /// There are other tables. Called by the threads that made them.
    void tablesChanged() {
        look(false);
    }

    private void look(boolean atMemory) {
        ReadView view = retainOrNull();
        if (view == null) {
            return;
        }
        try {
            if (atMemory) {
                fit.look(view.tableBytes(), view.logBytes(), counters.coldGets.sum() + counters.diskReads.sum());
            } else {
                fit.tablesChanged(view.tableBytes());
            }
            for (SSTable table : view.openTables().values()) {
                tell(table, fit.state());
            }
        } finally {
            view.release();
        }
    }

    static void tell(SSTable table, MemoryFit.State state) {
        table.expectMisses(state != MemoryFit.State.FITS, state == MemoryFit.State.EXCEEDS);
    }

    /// Null when the store is closed.
    private ReadView retainOrNull() {
        try {
            return views.retain();
        } catch (StoreClosedException e) {
            return null;
        }
    }

    /// Ends the thread.
    void stop() {
        synchronized (this) {
            stopping = true;
            notifyAll();
        }
        Threads.join(thread);
    }
}
