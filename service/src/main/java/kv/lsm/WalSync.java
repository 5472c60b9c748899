package kv.lsm;

import java.io.IOException;

/// Syncs a memtable's write-ahead log, counted and recorded as an event. After a sync that failed there is no
/// other, of any log: the system may have dropped what it could not write, and a later log must not be durable
/// without the one before.
final class WalSync {
    private final Counters counters;
    private volatile boolean failed;

    WalSync(Counters counters) {
        this.counters = counters;
    }

    /// True when a sync has failed.
    boolean hasFailed() {
        return failed;
    }

    /// Makes what the log holds now durable and returns its end. One thread at a time per log.
    long sync(Memtable memtable) throws IOException {
        long before = memtable.writer().durableEnd();
        if (memtable.writer().end() == before) {
            return before;
        }
        if (failed) {
            throw new IOException("a write-ahead log is not synced after a sync that failed");
        }
        StoreEvents.WalSync event = new StoreEvents.WalSync();
        event.begin();
        long start = System.nanoTime();
        long end;
        try {
            end = memtable.writer().sync();
        } catch (IOException | RuntimeException | Error e) {
            failed = true;
            throw e;
        }
        counters.walSyncs.increment();
        counters.walSyncNanos.add(System.nanoTime() - start);
        event.bytes = end - before;
        event.commit();
        return end;
    }
}
