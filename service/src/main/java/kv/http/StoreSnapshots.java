package kv.http;

import com.github.benmanes.caffeine.cache.stats.CacheStats;
import kv.cache.CachedStore;
import kv.lsm.StallCause;
import kv.lsm.Store;
import kv.lsm.StoreMetrics;

/// The store's and the cache's counters as metrics `kv_store_*` and `kv_cache_*`. Times in seconds, sizes in
/// bytes.
final class StoreSnapshots {
    private static final double NANOS_PER_SECOND = 1e9;

    private StoreSnapshots() {}

    static void add(Store storeOrNull, Snapshots to) {
        if (storeOrNull == null) {
            return;
        }
        StoreMetrics m = storeOrNull.metrics();
        to.counter("kv_store_operations", "Calls of the store.")
                .add(m.gets(), "operation", "get")
                .add(m.puts(), "operation", "put")
                .add(m.deletes(), "operation", "delete")
                .add(m.ranges(), "operation", "range")
                .end();
        counter(to, "kv_store_user_bytes", "Key and value bytes written by users.", m.userBytes());
        counter(to, "kv_store_bloom_checks", "Tables whose bloom filter was asked.", m.bloomChecks());
        counter(to, "kv_store_bloom_negatives", "Bloom filters that ruled a table out.", m.bloomNegatives());
        counter(to, "kv_store_block_reads", "Data blocks that gets looked into.", m.blockReads());
        counter(to, "kv_store_cold_gets", "Gets that left their selector to wait for the disk.", m.coldGets());
        counter(to, "kv_store_disk_reads", "Reads that gets waited for, of pages not in memory.", m.diskReads());
        counter(to, "kv_store_flushes", "Memtables flushed to tables.", m.flushes());
        counter(to, "kv_store_flush_bytes", "Bytes of tables written by flushes.", m.flushBytes());
        counter(to, "kv_store_flush_seconds", "Time spent flushing.", seconds(m.flushNanos()));
        counter(to, "kv_store_compactions", "Compactions ended.", m.compactions());
        counter(to, "kv_store_compaction_read_bytes", "Bytes of tables merged.", m.compactionBytesRead());
        counter(
                to,
                "kv_store_compaction_written_bytes",
                "Bytes of tables made by merging.",
                m.compactionBytesWritten());
        counter(to, "kv_store_compaction_seconds", "Time spent compacting.", seconds(m.compactionNanos()));
        counter(to, "kv_store_wal_bytes", "Bytes appended to write-ahead logs.", m.walBytes());
        counter(to, "kv_store_wal_syncs", "Syncs of write-ahead logs.", m.walSyncs());
        counter(to, "kv_store_wal_sync_seconds", "Time spent in them.", seconds(m.walSyncNanos()));
        Snapshots.Labelled stalls = to.counter("kv_store_write_stalls", "Writes that had to wait, by cause.");
        Snapshots.Labelled stalled = to.counter("kv_store_write_stall_seconds", "Time they waited.");
        for (StallCause cause : StallCause.values()) {
            StoreMetrics.Stalls s = m.stalls().get(cause);
            stalls.add(s.count(), "cause", cause.label());
            stalled.add(seconds(s.nanos()), "cause", cause.label());
        }
        stalls.end();
        stalled.end();
        levels(m, to);
        gauge(to, "kv_store_memtable_bytes", "Bytes of active and frozen memtables.", m.memtableBytes());
        gauge(to, "kv_store_frozen_memtables", "Memtables waiting for, or in, their flush.", m.frozenMemtables());
        gauge(to, "kv_store_off_heap_bytes", "Native memory of the store, mapped files apart.", m.offHeapBytes());
        gauge(to, "kv_store_mapped_bytes", "Bytes of files mapped into memory.", m.mappedBytes());
        gauge(
                to,
                "kv_store_pinned_bytes",
                "Native memory and mapped files that were replaced and that range reads still keep.",
                m.pinnedBytes());
        gauge(
                to,
                "kv_store_reads_wait_for_disk",
                "1 while tables may not be in memory: gets first ask the system what is there.",
                storeOrNull.readsWaitForDisk() ? 1 : 0);
        gauge(to, "kv_store_open_cursors", "Range reads under way.", m.openCursors());
        gauge(
                to,
                "kv_store_writable",
                "0 after an I/O error made the store refuse writes, and while a full disk keeps them waiting.",
                storeOrNull.isWritable() ? 1 : 0);
        to.gauge("kv_store_retrying", "1 while work failed, as on a full disk, and is tried again.")
                .add(m.flushFails() ? 1 : 0, "work", "flush")
                .add(m.compactionFails() ? 1 : 0, "work", "compaction")
                .end();
        gauge(
                to,
                "kv_store_recovery_seconds",
                "Time the last opening took.",
                m.recovery().time().toNanos() / NANOS_PER_SECOND);
        gauge(
                to,
                "kv_store_recovery_records",
                "Records it applied.",
                m.recovery().records());
        gauge(
                to,
                "kv_store_recovery_dropped_bytes",
                "Bytes of torn tails it dropped.",
                m.recovery().droppedBytes());
        if (storeOrNull instanceof CachedStore cached) {
            cache(cached, to);
        }
    }

    private static void levels(StoreMetrics m, Snapshots to) {
        Snapshots.Labelled runs = to.gauge("kv_store_level_runs", "Sorted runs by level.");
        Snapshots.Labelled tables = to.gauge("kv_store_level_tables", "Tables by level.");
        Snapshots.Labelled bytes = to.gauge("kv_store_level_bytes", "Bytes of tables by level.");
        for (StoreMetrics.Level level : m.levels()) {
            String number = Integer.toString(level.level());
            runs.add(level.runs(), "level", number);
            tables.add(level.tables(), "level", number);
            bytes.add(level.bytes(), "level", number);
        }
        runs.end();
        tables.end();
        bytes.end();
    }

    private static void cache(CachedStore cached, Snapshots to) {
        CacheStats stats = cached.cacheStats();
        counter(to, "kv_cache_hits", "Reads answered from the cache.", stats.hitCount());
        counter(to, "kv_cache_misses", "Reads that asked the store.", stats.missCount());
        counter(to, "kv_cache_evictions", "Entries evicted.", stats.evictionCount());
        gauge(to, "kv_cache_bytes", "What the entries count against --cache-bytes.", cached.bytes());
        gauge(to, "kv_cache_entries", "Entries held.", cached.entries());
    }

    private static double seconds(long nanos) {
        return nanos / NANOS_PER_SECOND;
    }

    private static void counter(Snapshots to, String name, String help, double value) {
        to.counter(name, help).add(value).end();
    }

    private static void gauge(Snapshots to, String name, String help, double value) {
        to.gauge(name, help).add(value).end();
    }
}
