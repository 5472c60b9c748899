package kv.lsm.log;

import java.nio.file.Path;
import java.util.function.LongConsumer;
import kv.lsm.CorruptionException;
import kv.lsm.memory.Mapped;
import kv.lsm.memory.Memory;

/// Reads a write-ahead log and tells a torn tail from damage.
///
/// After a crash the end of a log may be missing, in units of disk sectors and in any order, but only what was
/// not synced. So where the records break off, what follows decides:
///
/// - nothing but zeros: the end of the log;
/// - no valid record: a torn tail, dropped;
/// - a valid record: what lies between was lost unsynced, which shows as a sector that still ends in zeros, or as a
///   record without its checksum, and the rest is dropped with it. If the record says that the place was durable,
///   or there is no such sign, the file was damaged.
public final class WriteAheadLogReader {
    /// @param headerOrNull null when the log was never started or its start was never synced
    /// @param end where the valid records end, bytes
    /// @param records records given to the consumer
    /// @param droppedBytes bytes after the end that are not zero, up to the last such byte
    /// @param synced true when a record proves that the log was synced at least once
    /// @param closed true when it ends with the mark of an orderly close
    public record Result(
            WriteAheadLogFormat.Header headerOrNull,
            long end,
            long records,
            long droppedBytes,
            boolean synced,
            boolean closed) {}

    private final Path file;
    private final long number;
    private final long log;
    private final long bytes;

    /// @param number of the log by its name
    /// @param log address of the file's bytes
    public WriteAheadLogReader(Path file, long number, long log, long bytes) {
        this.file = file;
        this.number = number;
        this.log = log;
        this.bytes = bytes;
    }

    /// The header alone, or null.
    public WriteAheadLogFormat.Header header() {
        return bytes < WriteAheadLogFormat.HEADER_BYTES ? null : WriteAheadLogFormat.readHeader(log);
    }

    /// Gives the address of each valid record to `consumer`, in the order of writing.
    ///
    /// @param knownEnd where the log ended as the next log tells it, or 0
    /// @throws CorruptionException at the first damage that is no torn tail
    public Result read(long knownEnd, LongConsumer consumer) {
        requireKnownVersion();
        WriteAheadLogFormat.Header header = header();
        LogRecords valid = new LogRecords(log, bytes, number);
        long end = header == null ? 0 : WriteAheadLogFormat.HEADER_BYTES;
        long batchBytes = 0;
        long records = 0;
        boolean synced = false;
        boolean closed = false;
        if (header != null) {
            for (long size; (size = valid.validBytes(end)) > 0; end += size) {
                synced |= WriteAheadLogFormat.durable(log + end) > 0;
                if (WriteAheadLogFormat.isClosed(log + end)) {
                    end += size;
                    closed = true;
                    break;
                }
                if (WriteAheadLogFormat.isBatch(log + end)) {
                    batchBytes = valid.wholeBatchBytes(end);
                    if (batchBytes < WriteAheadLogFormat.batchBytes(log + end)) {
                        break; // all of it or nothing
                    }
                    for (long at = end + size; at < end + batchBytes; records++) {
                        consumer.accept(log + at);
                        at += WriteAheadLogFormat.recordBytes(log + at);
                    }
                    size = batchBytes;
                    batchBytes = 0;
                    continue;
                }
                consumer.accept(log + end);
                records++;
            }
        }
        long broken = end + batchBytes; // behind what is whole of a batch that is not
        if (broken < knownEnd && !endsInZeros(knownEnd)) {
            requireLostUnsynced(broken, knownEnd);
        }
        long lastUsed = lastUsedByte(end);
        requireTornTail(valid, broken, lastUsed);
        Mapped.throwPending();
        return new Result(header, end, records, Math.max(lastUsed - end, 0), synced, closed);
    }

    private void requireKnownVersion() {
        int unknown = bytes < WriteAheadLogFormat.HEADER_BYTES ? 0 : WriteAheadLogFormat.unknownVersion(log);
        if (unknown != 0) {
            throw new CorruptionException(
                    file,
                    8,
                    "unknown version of a write-ahead log, open it with the release that wrote it: version=" + unknown);
        }
    }

    private void requireTornTail(LogRecords valid, long end, long lastUsed) {
        long step = WriteAheadLogFormat.RECORD_ALIGNMENT_BYTES;
        for (long at = end + step, size; at < lastUsed; at += Math.max(size, step)) { // no record lies in another
            size = valid.foundBytes(at);
            if (size > 0) {
                if (WriteAheadLogFormat.durable(log + at) > end) {
                    throw new CorruptionException(
                            file, end, "a record that was made durable does not match its checksum");
                }
                requireLostUnsynced(end, at);
            }
        }
    }

    /// A page may be written to the disk while records are appended to it. It holds its front as that was before its
    /// back then: a record there lacks its checksum, which is stored last, and one behind it is whole.
    ///
    /// @param valid where bytes that were written later are still there, or where the log ended
    private void requireLostUnsynced(long end, long valid) {
        if (end + Integer.BYTES > bytes || Memory.getInt(log + end) == 0) {
            return;
        }
        long sector = WriteAheadLogFormat.SECTOR_BYTES;
        for (long sectorEnd = (end / sector + 1) * sector; sectorEnd <= valid; sectorEnd += sector) {
            if (endsInZeros(sectorEnd)) {
                return;
            }
        }
        throw new CorruptionException(file, end, "a record before valid ones does not match its checksum");
    }

    /// True when the eight bytes before `position` are zero or missing.
    private boolean endsInZeros(long position) {
        return position > bytes || Memory.getLong(log + position - Long.BYTES) == 0;
    }

    /// The end of the last eight bytes that are not zero.
    private long lastUsedByte(long from) {
        for (long at = bytes & -Long.BYTES; at > from; at -= Long.BYTES) {
            if (Memory.getLong(log + at - Long.BYTES) != 0) {
                return at;
            }
        }
        return from;
    }
}
