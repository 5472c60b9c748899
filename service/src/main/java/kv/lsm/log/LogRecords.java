package kv.lsm.log;

import kv.lsm.memory.Mapped;
import kv.lsm.memory.Memory;
import kv.lsm.memory.PartChecksums;

/// Which bytes of a log are valid records.
///
/// A record proves itself by its checksum, which since version 3 holds the log's number and the record's place,
/// too: the bytes of a record that lie elsewhere, as in a value, are none. Where the header cannot be read the
/// version is unknown, and either checksum will do.
final class LogRecords {
    /// Of what may be a longer record, where one need not begin, [PartChecksums] tells the checksum.
    private static final int SHORT_BYTES = 16 << 10;

    private final long log;
    private final long bytes;
    private final long number;
    private final boolean mayHavePlaces;
    private final boolean mayLackPlaces;
    private PartChecksums partsOrNull;

    /// @param log address of the file's bytes
    /// @param number of the log, for where its header cannot be read
    LogRecords(long log, long bytes, long number) {
        this.log = log;
        this.bytes = bytes;
        WriteAheadLogFormat.Header header =
                bytes < WriteAheadLogFormat.HEADER_BYTES ? null : WriteAheadLogFormat.readHeader(log);
        this.number = header == null ? number : header.number();
        boolean hasPlaces = header != null && WriteAheadLogFormat.hasPlaces(log);
        mayHavePlaces = header == null || hasPlaces;
        mayLackPlaces = header == null || !hasPlaces;
    }

    /// Bytes of the whole record at `at`, or -1 when there is none.
    long validBytes(long at) {
        return validBytes(at, bytes, true);
    }

    private long validBytes(long at, long end, boolean isKnownPlace) {
        long found = wholeRecordBytes(at, end, isKnownPlace);
        Mapped.throwPending(); // or a page that could not be read would be the end of the log
        return found;
    }

    private long wholeRecordBytes(long at, long end, boolean isKnownPlace) {
        if (end - at < WriteAheadLogFormat.RECORD_HEADER_BYTES) {
            return -1;
        }
        long record = log + at;
        int keyLength = WriteAheadLogFormat.keyLength(record);
        long contentLength = WriteAheadLogFormat.contentLength(record, keyLength);
        if (contentLength < 0) {
            return -1;
        }
        long recordBytes = WriteAheadLogFormat.aligned(contentLength);
        if (recordBytes > end - at) {
            return -1;
        }
        int checksum = isKnownPlace || contentLength <= SHORT_BYTES
                ? WriteAheadLogFormat.checksum(record, contentLength)
                : parts().of(at + WriteAheadLogFormat.DURABLE_AT, at + contentLength);
        int difference = Memory.getInt(record) ^ checksum;
        boolean isWhole = mayHavePlaces && difference == WriteAheadLogFormat.place(number, at)
                || mayLackPlaces && difference == 0;
        return isWhole ? recordBytes : -1;
    }

    /// As [#validBytes], at a place of the log where a record need not begin. No record can say that more was
    /// durable than lies before it, which spares most places their checksum.
    long foundBytes(long at) {
        boolean isNone =
                bytes - at < WriteAheadLogFormat.RECORD_HEADER_BYTES || WriteAheadLogFormat.durable(log + at) > at;
        return isNone ? -1 : validBytes(at, bytes, false);
    }

    private PartChecksums parts() {
        if (partsOrNull == null) {
            partsOrNull = new PartChecksums(log, bytes);
        }
        return partsOrNull;
    }

    /// How many bytes of the batch at `at` are whole records, those of the record that begins it included: all of
    /// [WriteAheadLogFormat#batchBytes(long)] when it is whole.
    long wholeBatchBytes(long at) {
        long batchBytes = WriteAheadLogFormat.batchBytes(log + at);
        long end = Math.min(at + batchBytes, bytes);
        long next = at + WriteAheadLogFormat.BATCH_HEADER_BYTES;
        int records = 0;
        for (long size; next < end; next += size, records++) {
            size = validBytes(next, end, true);
            if (size <= 0 || WriteAheadLogFormat.keyLength(log + next) == 0) {
                return next - at;
            }
        }
        boolean isWhole = next - at == batchBytes && records == WriteAheadLogFormat.batchRecords(log + at);
        return isWhole ? batchBytes : Math.min(next - at, batchBytes - 1);
    }
}
