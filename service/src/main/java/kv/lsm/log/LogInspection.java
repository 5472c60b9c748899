package kv.lsm.log;

import java.util.function.LongConsumer;
import kv.lsm.memory.Memory;

/// Finds every valid record of a write-ahead log, also behind damaged ones. For tools that look at a closed
/// store.
public final class LogInspection {
    /// @param records found
    /// @param lostAt where the first bytes lie that are no record and not zero, or -1
    /// @param lostBytes how many such bytes there are before the last record
    /// @param firstOffset of a record, or -1
    public record Result(long records, long lostAt, long lostBytes, long firstOffset) {}

    private LogInspection() {}

    /// Gives the address of each valid record to `consumer`, in the order of writing.
    ///
    /// @param number of the log by its name
    /// @param log address of the file's bytes
    public static Result read(long number, long log, long bytes, LongConsumer consumer) {
        LogRecords valid = new LogRecords(log, bytes, number);
        long records = 0;
        long first = -1;
        long lostAt = -1;
        long lostBytes = 0;
        long pending = 0;
        for (long at = WriteAheadLogFormat.HEADER_BYTES; at + Long.BYTES <= bytes; ) {
            long size = valid.foundBytes(at);
            if (size <= 0) {
                if (Memory.getLong(log + at) != 0) {
                    lostAt = lostAt < 0 ? at : lostAt;
                    pending += Long.BYTES;
                }
                at += WriteAheadLogFormat.RECORD_ALIGNMENT_BYTES;
                continue;
            }
            if (WriteAheadLogFormat.isBatch(log + at)) {
                long batchBytes = WriteAheadLogFormat.batchBytes(log + at);
                if (valid.wholeBatchBytes(at) < batchBytes) { // none of it counts
                    lostAt = lostAt < 0 ? at : lostAt;
                    pending += Math.min(batchBytes, bytes - at);
                    at += batchBytes;
                    continue;
                }
            }
            lostBytes += pending;
            pending = 0;
            if (WriteAheadLogFormat.isBatch(log + at)) {
                at += WriteAheadLogFormat.BATCH_HEADER_BYTES; // its records follow
                continue;
            }
            if (!WriteAheadLogFormat.isClosed(log + at)) {
                consumer.accept(log + at);
                records++;
                first = first < 0 ? at : first;
            }
            at += size;
        }
        return new Result(records, lostAt, lostBytes, first);
    }
}
