package kv.lsm;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import kv.lsm.memory.Allocator;
import kv.lsm.table.SSTable;

/// The counters behind [StoreMetrics]. Thread-safe.
final class Counters {
    final GetCounters gets = new GetCounters();
    /// Gets that were begun again on a thread that may wait for the disk.
    final LongAdder coldGets = new LongAdder();
    /// Reads that gets waited for because a page was not in memory, on whatever thread.
    final LongAdder diskReads = new LongAdder();
    final LongAdder puts = new LongAdder();
    final LongAdder deletes = new LongAdder();
    final LongAdder ranges = new LongAdder();
    final LongAdder userBytes = new LongAdder();
    final LongAdder flushes = new LongAdder();
    final LongAdder flushBytes = new LongAdder();
    final LongAdder flushNanos = new LongAdder();
    final LongAdder compactions = new LongAdder();
    final LongAdder compactionBytesRead = new LongAdder();
    final LongAdder compactionBytesWritten = new LongAdder();
    final LongAdder compactionNanos = new LongAdder();
    final LongAdder walBytes = new LongAdder();
    final LongAdder walSyncs = new LongAdder();
    final LongAdder walSyncNanos = new LongAdder();
    final AtomicInteger openCursors = new AtomicInteger();
    private final Map<StallCause, LongAdder> stalls = adders();
    private final Map<StallCause, LongAdder> stallNanos = adders();

    private static Map<StallCause, LongAdder> adders() {
        Map<StallCause, LongAdder> adders = new EnumMap<>(StallCause.class);
        for (StallCause cause : StallCause.values()) {
            adders.put(cause, new LongAdder());
        }
        return adders;
    }

    void stalled(StallCause cause, long nanos) {
        stalls.get(cause).increment();
        stallNanos.get(cause).add(nanos);
    }

    Map<StallCause, StoreMetrics.Stalls> stalls() {
        Map<StallCause, StoreMetrics.Stalls> result = new EnumMap<>(StallCause.class);
        stalls.forEach((cause, count) -> result.put(
                cause,
                new StoreMetrics.Stalls(count.sum(), stallNanos.get(cause).sum())));
        return result;
    }

    StoreMetrics snapshot(
            ReadView view,
            long pinnedBytes,
            Allocator allocator,
            boolean flushFails,
            boolean compactionFails,
            StoreMetrics.Recovery recovery) {
        List<Memtable> memtables = view.memtablesOldestFirst();
        return new StoreMetrics(
                gets.gets(),
                puts.sum(),
                deletes.sum(),
                ranges.sum(),
                userBytes.sum(),
                gets.checks(),
                gets.negatives(),
                gets.reads(),
                coldGets.sum(),
                diskReads.sum(),
                flushes.sum(),
                flushBytes.sum(),
                flushNanos.sum(),
                compactions.sum(),
                compactionBytesRead.sum(),
                compactionBytesWritten.sum(),
                compactionNanos.sum(),
                walBytes.sum(),
                walSyncs.sum(),
                walSyncNanos.sum(),
                stalls(),
                levels(view.version()),
                memtables.stream().mapToLong(Memtable::bytes).sum(),
                view.frozenCount(),
                allocator.allocatedBytes(),
                view.openTables().values().stream()
                                .mapToLong(SSTable::mappedBytes)
                                .sum()
                        + memtables.stream().mapToLong(Memtable::mappedBytes).sum(),
                pinnedBytes,
                openCursors.get(),
                flushFails,
                compactionFails,
                recovery);
    }

    private static List<StoreMetrics.Level> levels(Version version) {
        List<StoreMetrics.Level> levels = new ArrayList<>();
        for (int level = 0; level <= version.deepestLevel(); level++) {
            List<Run> runs = version.level(level);
            int tables = runs.stream().mapToInt(run -> run.tables().size()).sum();
            long bytes = runs.stream().mapToLong(Run::bytes).sum();
            if (tables > 0) {
                levels.add(new StoreMetrics.Level(level, runs.size(), tables, bytes));
            }
        }
        return levels;
    }
}
