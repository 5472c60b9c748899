package kv;

import com.github.benmanes.caffeine.cache.stats.CacheStats;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Event;
import jdk.jfr.FlightRecorder;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Period;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;
import kv.cache.CachedStore;
import kv.lsm.StallCause;
import kv.lsm.Store;
import kv.lsm.StoreClosedException;
import kv.lsm.StoreMetrics;

/// What the store and its cache have counted, once a second in a Java Flight Recording that asks for it, and at
/// no cost in others.
///
/// Asking `/metrics` as often costs milliseconds each time, in a service too young for that path to be
/// compiled, and the requests of those milliseconds wait. This is some forty numbers and no text.
final class CounterEvents implements AutoCloseable {
    private final Store store;
    private final Runnable hook = this::commit;

    @Name("kv.Counters")
    @Label("Store and cache counters")
    @Category("Key-value store")
    @Period("1 s")
    @StackTrace(false)
    static final class Counters extends Event {
        @Label("Gets")
        long gets;

        @Label("Puts")
        long puts;

        @Label("Deletes")
        long deletes;

        @Label("Ranges")
        long ranges;

        @DataAmount
        @Label("Bytes written by users")
        long userBytes;

        @Label("Bloom filters asked")
        long bloomChecks;

        @Label("Bloom filters that ruled a table out")
        long bloomNegatives;

        @Label("Blocks looked into")
        long blockReads;

        @Label("Flushes")
        long flushes;

        @DataAmount
        @Label("Bytes flushed")
        long flushBytes;

        @Timespan
        @Label("Time flushing")
        long flushTime;

        @Label("Compactions")
        long compactions;

        @DataAmount
        @Label("Bytes read by compactions")
        long compactionBytesRead;

        @DataAmount
        @Label("Bytes written by compactions")
        long compactionBytesWritten;

        @Timespan
        @Label("Time compacting")
        long compactionTime;

        @DataAmount
        @Label("Bytes of write-ahead logs")
        long walBytes;

        @Label("Log syncs")
        long walSyncs;

        @Timespan
        @Label("Time syncing logs")
        long walSyncTime;

        @Label("Writes that waited for a memtable")
        long frozenMemtablesStalls;

        @Timespan
        @Label("Time they waited")
        long frozenMemtablesStallTime;

        @Label("Writes slowed down by level 0")
        long level0SlowdownStalls;

        @Timespan
        @Label("Time they waited")
        long level0SlowdownStallTime;

        @Label("Writes stopped by level 0")
        long level0StopStalls;

        @Timespan
        @Label("Time they waited")
        long level0StopStallTime;

        @Label("Runs in level 0")
        int level0Runs;

        @Label("Tables")
        int tables;

        @DataAmount
        @Label("Bytes of tables")
        long tableBytes;

        @DataAmount
        @Label("Memtable bytes")
        long memtableBytes;

        @Label("Frozen memtables")
        int frozenMemtables;

        @DataAmount
        @Label("Native memory")
        long offHeapBytes;

        @DataAmount
        @Label("Mapped bytes")
        long mappedBytes;

        @Label("Open cursors")
        int openCursors;

        @Label("Cache hits")
        long cacheHits;

        @Label("Cache misses")
        long cacheMisses;

        @Label("Cache evictions")
        long cacheEvictions;

        @Label("Cache entries")
        long cacheEntries;
    }

    CounterEvents(Store store) {
        this.store = store;
        FlightRecorder.addPeriodicEvent(Counters.class, hook);
    }

    private void commit() {
        try {
            eventOf(store).commit();
        } catch (StoreClosedException e) {
            // closed between the end of this object and the recorder's next look at it: there is nothing to
            // count any more
        }
    }

    static Counters eventOf(Store store) {
        StoreMetrics m = store.metrics();
        Counters event = new Counters();
        event.gets = m.gets();
        event.puts = m.puts();
        event.deletes = m.deletes();
        event.ranges = m.ranges();
        event.userBytes = m.userBytes();
        event.bloomChecks = m.bloomChecks();
        event.bloomNegatives = m.bloomNegatives();
        event.blockReads = m.blockReads();
        event.flushes = m.flushes();
        event.flushBytes = m.flushBytes();
        event.flushTime = m.flushNanos();
        event.compactions = m.compactions();
        event.compactionBytesRead = m.compactionBytesRead();
        event.compactionBytesWritten = m.compactionBytesWritten();
        event.compactionTime = m.compactionNanos();
        event.walBytes = m.walBytes();
        event.walSyncs = m.walSyncs();
        event.walSyncTime = m.walSyncNanos();
        event.frozenMemtablesStalls = stalls(m, StallCause.FROZEN_MEMTABLES).count();
        event.frozenMemtablesStallTime = stalls(m, StallCause.FROZEN_MEMTABLES).nanos();
        event.level0SlowdownStalls = stalls(m, StallCause.LEVEL0_SLOWDOWN).count();
        event.level0SlowdownStallTime = stalls(m, StallCause.LEVEL0_SLOWDOWN).nanos();
        event.level0StopStalls = stalls(m, StallCause.LEVEL0_STOP).count();
        event.level0StopStallTime = stalls(m, StallCause.LEVEL0_STOP).nanos();
        for (StoreMetrics.Level level : m.levels()) {
            event.level0Runs += level.level() == 0 ? level.runs() : 0;
            event.tables += level.tables();
            event.tableBytes += level.bytes();
        }
        event.memtableBytes = m.memtableBytes();
        event.frozenMemtables = m.frozenMemtables();
        event.offHeapBytes = m.offHeapBytes();
        event.mappedBytes = m.mappedBytes();
        event.openCursors = m.openCursors();
        if (store instanceof CachedStore cached) {
            CacheStats stats = cached.cacheStats();
            event.cacheHits = stats.hitCount();
            event.cacheMisses = stats.missCount();
            event.cacheEvictions = stats.evictionCount();
            event.cacheEntries = cached.entries();
        }
        return event;
    }

    private static StoreMetrics.Stalls stalls(StoreMetrics metrics, StallCause cause) {
        return metrics.stalls().get(cause);
    }

    @Override
    public void close() {
        FlightRecorder.removePeriodicEvent(hook);
    }
}
