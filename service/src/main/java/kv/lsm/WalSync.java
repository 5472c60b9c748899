package kv.lsm;

import java.io.IOException;

/// Syncs a memtable's write-ahead log, counted and recorded as an event.
final class WalSync {
    private final Counters counters;

    WalSync(Counters counters) {
        this.counters = counters;
    }

    /// Makes what the log holds now durable and returns its end. One thread at a time per log.
    long sync(Memtable memtable) throws IOException {
        long before = memtable.writer().durableEnd();
        if (memtable.writer().end() == before) {
            return before;
        }
        StoreEvents.WalSync event = new StoreEvents.WalSync();
        event.begin();
        long start = System.nanoTime();
        long end = memtable.writer().sync();
        counters.walSyncs.increment();
        counters.walSyncNanos.add(System.nanoTime() - start);
        event.bytes = end - before;
        event.commit();
        return end;
    }
}
