package kv.lsm;

import java.time.Duration;
import java.util.List;
import java.util.Map;

/// The store's counters at one moment. Counters only grow while the store is open and start at zero when it is
/// opened; gauges are marked as such. Bytes are bytes, times are nanoseconds.
///
/// @param userBytes key and value bytes handed to put and delete
/// @param bloomChecks tables whose bloom filter was asked by a get
/// @param bloomNegatives of those, how often the answer was "not here"
/// @param blockReads data blocks that gets looked into; of tables with a hash index those that held the key
/// @param coldGets gets that had to wait for the disk and went on where that holds up nobody else
/// @param diskReads reads that gets waited for because a page of a table was not in memory
/// @param flushNanos time spent flushing, summed over flushes
/// @param compactionBytesRead sizes of the tables that compactions merged
/// @param compactionBytesWritten sizes of the tables that compactions made
/// @param walBytes bytes appended to write-ahead logs
/// @param stalls writers' waiting by cause; every cause is present
/// @param levels gauge: what each level that is not empty holds
/// @param memtableBytes gauge: records and index of the active and frozen memtables
/// @param frozenMemtables gauge: memtables waiting for, or in, their flush
/// @param offHeapBytes gauge: native memory allocated by the store (memtable indexes and filters, buffers,
/// loaded indexes and
///     filters); without mapped files
/// @param mappedBytes gauge: bytes of files mapped into memory (tables and write-ahead logs)
/// @param pinnedBytes gauge: bytes of native memory and mapped files that are replaced, and kept because
/// cursors still use them
/// @param openCursors gauge: range cursors not yet closed
/// @param flushFails gauge: a flush, or the log that is made before it, failed and is tried again
/// @param compactionFails gauge: a compaction failed and is tried again
/// @param recovery what opening the store found in the write-ahead logs
public record StoreMetrics(
        long gets,
        long puts,
        long deletes,
        long ranges,
        long userBytes,
        long bloomChecks,
        long bloomNegatives,
        long blockReads,
        long coldGets,
        long diskReads,
        long flushes,
        long flushBytes,
        long flushNanos,
        long compactions,
        long compactionBytesRead,
        long compactionBytesWritten,
        long compactionNanos,
        long walBytes,
        long walSyncs,
        long walSyncNanos,
        Map<StallCause, Stalls> stalls,
        List<Level> levels,
        long memtableBytes,
        int frozenMemtables,
        long offHeapBytes,
        long mappedBytes,
        long pinnedBytes,
        int openCursors,
        boolean flushFails,
        boolean compactionFails,
        Recovery recovery) {

    /// @param count writes that had to wait
    /// @param nanos time they waited
    public record Stalls(long count, long nanos) {}

    /// @param level 0 is the newest
    /// @param runs sorted runs a get may have to look into
    public record Level(int level, int runs, int tables, long bytes) {}

    /// @param logs write-ahead logs read
    /// @param records records applied
    /// @param droppedBytes bytes of torn or never synced tails that were dropped; 0 after an orderly stop
    public record Recovery(int logs, long records, long droppedBytes, Duration time) {
        public static final Recovery NOTHING = new Recovery(0, 0, 0, Duration.ZERO);
    }
}
