package kv.lsm.log;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.zip.CRC32C;
import kv.lsm.WriteBatch;
import kv.lsm.memory.Checksum;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Mapped;
import kv.lsm.memory.Memory;

/// The bytes of a write-ahead log; `service/docs/write-ahead-log-format.md` is its specification.
///
/// ```
/// file     header (64 bytes), records, zeros to the end
/// header   magic 8 │ version 4 │ crc 4 │ number 8 │ previous number 8 │ previous end 8 │ zeros
/// record   crc 4 │ durable 4 │ value length 4 │ key length 2 │ key │ value │ zeros up to a multiple of 8
/// batch    crc 4 │ durable 4 │ -3 4 │ 0 2 │ records 4 │ bytes 4 │ zeros 2, then so many records of so many bytes in
/// all
/// ```
///
/// Numbers are little-endian. A record starts at a multiple of 8 and is never changed once written: the
/// memtable of the log points into it.
public final class WriteAheadLogFormat {
    /// "kvwalog1" when read as text.
    public static final long MAGIC = 0x31676F6C6177766BL;
    public static final int VERSION = 2;
    /// Without batches; is still read.
    private static final int VERSION_WITHOUT_BATCHES = 1;
    public static final int HEADER_BYTES = 64;
    public static final int RECORD_ALIGNMENT_BYTES = 8;
    /// Bytes of a record before its key.
    public static final int RECORD_HEADER_BYTES = 14;
    /// Loss of unsynced data is told from damage in units of a disk sector.
    public static final int SECTOR_BYTES = 512;

    private static final int VERSION_AT = 8;
    private static final int HEADER_CRC_AT = 12;
    private static final int NUMBER_AT = 16;
    private static final int PREVIOUS_NUMBER_AT = 24;
    private static final int PREVIOUS_END_AT = 32;

    private static final int DURABLE_AT = 4;
    private static final int VALUE_LENGTH_AT = 8;
    private static final int KEY_LENGTH_AT = 12;

    /// @param number counts up over all logs of a store
    /// @param previousNumber the log before this one, or 0
    /// @param previousEnd where that one ended, bytes
    public record Header(long number, long previousNumber, long previousEnd) {}

    private WriteAheadLogFormat() {}

    static void writeHeader(long log, Header header) {
        Memory.putLong(log, MAGIC);
        Memory.putInt(log + VERSION_AT, VERSION);
        Memory.putLong(log + NUMBER_AT, header.number);
        Memory.putLong(log + PREVIOUS_NUMBER_AT, header.previousNumber);
        Memory.putLong(log + PREVIOUS_END_AT, header.previousEnd);
        Memory.putInt(log + HEADER_CRC_AT, headerChecksum(log));
    }

    /// Null when the bytes are no header.
    static Header readHeader(long log) {
        boolean isHeader = Memory.getLong(log) == MAGIC
                && unknownVersion(log) == 0
                && Memory.getInt(log + HEADER_CRC_AT) == headerChecksum(log);
        Header header = new Header(
                Memory.getLong(log + NUMBER_AT),
                Memory.getLong(log + PREVIOUS_NUMBER_AT),
                Memory.getLong(log + PREVIOUS_END_AT));
        Mapped.throwPending();
        return isHeader ? header : null;
    }

    /// False when no crash can have left these bytes of a log: its first eight are neither written nor zero.
    public static boolean mayBeLog(long log, long bytes) {
        boolean may = true;
        for (int i = 0; i < Math.min(bytes, Long.BYTES); i++) {
            byte found = Memory.getByte(log + i);
            may &= found == 0 || found == (byte) (MAGIC >>> Byte.SIZE * i);
        }
        Mapped.throwPending();
        return may;
    }

    /// The version of a log that only a later release can read, or 0.
    static int unknownVersion(long log) {
        int version = Memory.getInt(log + VERSION_AT);
        boolean isLog = Memory.getLong(log) == MAGIC && Memory.getInt(log + HEADER_CRC_AT) == headerChecksum(log);
        return isLog && version != VERSION && version != VERSION_WITHOUT_BATCHES ? version : 0;
    }

    private static int headerChecksum(long log) {
        return Checksum.ofMapped(log + NUMBER_AT, HEADER_BYTES - NUMBER_AT);
    }

    /// Bytes that a record takes in the log.
    public static long recordBytes(int keyLength, int valueLength) {
        long bytes = RECORD_HEADER_BYTES + keyLength + Math.max(valueLength, 0L);
        return (bytes + RECORD_ALIGNMENT_BYTES - 1) & -RECORD_ALIGNMENT_BYTES;
    }

    /// Bytes that the valid record at `record` takes, which is no mark.
    public static long recordBytes(long record) {
        return recordBytes(keyLength(record), valueLength(record));
    }

    /// Bytes that the batch takes.
    public static long batchBytes(List<WriteBatch.Write> writes) {
        long bytes = BATCH_HEADER_BYTES;
        for (WriteBatch.Write write : writes) {
            bytes += recordBytes(write.key().length, write.valueOrNull() == null ? 0 : write.valueOrNull().length);
        }
        return bytes;
    }

    /// Writes all of a record but its checksum.
    static void writeRecord(long record, long durable, byte[] key, byte[] valueOrNull) {
        Memory.putInt(record + DURABLE_AT, (int) (durable / RECORD_ALIGNMENT_BYTES));
        Memory.putInt(record + VALUE_LENGTH_AT, valueOrNull == null ? EntryIterator.TOMBSTONE : valueOrNull.length);
        Memory.putShort(record + KEY_LENGTH_AT, key.length);
        Memory.copy(key, record + RECORD_HEADER_BYTES);
        if (valueOrNull != null) {
            Memory.copy(valueOrNull, record + RECORD_HEADER_BYTES + key.length);
        }
    }

    /// Closes a record written at `offset` of the log that `log` views.
    ///
    /// The checksum's machine code reads the log: were its page taken from memory since the record was written, and
    /// could the disk not give it back, the process would end. That is left so: of copies in the heap the checksum
    /// takes longer, and each write pays for it.
    static void writeChecksum(ByteBuffer log, int offset, int keyLength, int valueLength, CRC32C crc) {
        crc.reset();
        log.limit(offset + RECORD_HEADER_BYTES + keyLength + Math.max(valueLength, 0))
                .position(offset + DURABLE_AT);
        crc.update(log);
        log.limit(log.capacity());
        log.putInt(offset, (int) crc.getValue());
    }

    /// Bytes of the whole record at `record`, or -1 when there is none.
    ///
    /// @param bytesLeft bytes of the log from there on
    static long validRecordBytes(long record, long bytesLeft) {
        long bytes = wholeRecordBytes(record, bytesLeft);
        Mapped.throwPending(); // or a page that could not be read would be the end of the log
        return bytes;
    }

    private static long wholeRecordBytes(long record, long bytesLeft) {
        if (bytesLeft < RECORD_HEADER_BYTES) {
            return -1;
        }
        int keyLength = keyLength(record);
        int valueLength = valueLength(record);
        boolean isMark = valueLength == CLOSED_VALUE_LENGTH || valueLength == BATCH_VALUE_LENGTH;
        if (isMark != (keyLength == 0) || valueLength < BATCH_VALUE_LENGTH) {
            return -1;
        }
        int contentLength = valueLength == BATCH_VALUE_LENGTH ? BATCH_CONTENT_BYTES : valueLength;
        long bytes = recordBytes(keyLength, contentLength);
        if (bytes > bytesLeft) {
            return -1;
        }
        long contentBytes = RECORD_HEADER_BYTES + keyLength + Math.max(contentLength, 0L);
        boolean isWhole = Memory.getInt(record) == Checksum.ofMapped(record + DURABLE_AT, contentBytes - DURABLE_AT);
        return isWhole ? bytes : -1;
    }

    /// As [#validRecordBytes], at a place `at` of the log where a record need not begin. No record can say that
    /// more was durable than lies before it, which spares most places their checksum.
    static long foundRecordBytes(long log, long at, long bytes) {
        boolean isNone = bytes - at < RECORD_HEADER_BYTES || durable(log + at) > at;
        return isNone ? -1 : validRecordBytes(log + at, bytes - at);
    }

    /// The value length of the record without a key that begins a batch.
    static final int BATCH_VALUE_LENGTH = -3;

    /// Of the record that begins a batch: number and bytes of the records that follow.
    private static final int BATCH_CONTENT_BYTES = 8;
    public static final int BATCH_HEADER_BYTES = 24;
    private static final int BATCH_RECORDS_AT = 14;
    private static final int BATCH_BYTES_AT = 18;

    static void writeBatchHeader(long record, long durable, int records, int bytes) {
        Memory.putInt(record + DURABLE_AT, (int) (durable / RECORD_ALIGNMENT_BYTES));
        Memory.putInt(record + VALUE_LENGTH_AT, BATCH_VALUE_LENGTH);
        Memory.putShort(record + KEY_LENGTH_AT, 0);
        Memory.putInt(record + BATCH_RECORDS_AT, records);
        Memory.putInt(record + BATCH_BYTES_AT, bytes);
        int contentBytes = RECORD_HEADER_BYTES + BATCH_CONTENT_BYTES;
        Memory.putInt(record, Checksum.ofMapped(record + DURABLE_AT, contentBytes - DURABLE_AT));
    }

    /// True when the valid record at `record` begins a batch.
    public static boolean isBatch(long record) {
        return keyLength(record) == 0 && valueLength(record) == BATCH_VALUE_LENGTH;
    }

    static int batchRecords(long record) {
        return Memory.getInt(record + BATCH_RECORDS_AT);
    }

    /// Bytes of a batch with the record that begins it.
    public static long batchBytes(long record) {
        return BATCH_HEADER_BYTES + (Memory.getInt(record + BATCH_BYTES_AT) & 0xFFFF_FFFFL);
    }

    /// How many bytes of the batch are whole records, those of the record that begins it included: all of
    /// [#batchBytes] when it is whole.
    ///
    /// @param bytesLeft bytes of the log from `record` on
    static long wholeBatchBytes(long record, long bytesLeft) {
        long end = Math.min(batchBytes(record), bytesLeft);
        long at = BATCH_HEADER_BYTES;
        int records = 0;
        for (long size; at < end; at += size, records++) {
            size = validRecordBytes(record + at, end - at);
            if (size <= 0 || keyLength(record + at) == 0) {
                return at;
            }
        }
        return at == batchBytes(record) && records == batchRecords(record) ? at : Math.min(at, batchBytes(record) - 1);
    }

    /// The value length of the record without a key that an orderly close leaves at the end.
    static final int CLOSED_VALUE_LENGTH = -2;

    static boolean isClosed(long record) {
        return valueLength(record) == CLOSED_VALUE_LENGTH;
    }

    static void writeClosed(long record, long durable) {
        Memory.putInt(record + DURABLE_AT, (int) (durable / RECORD_ALIGNMENT_BYTES));
        Memory.putInt(record + VALUE_LENGTH_AT, CLOSED_VALUE_LENGTH);
        Memory.putShort(record + KEY_LENGTH_AT, 0);
        Memory.putInt(record, Checksum.ofMapped(record + DURABLE_AT, RECORD_HEADER_BYTES - DURABLE_AT));
    }

    /// Bytes of the log that were known to be durable when the record was written.
    static long durable(long record) {
        return (Memory.getInt(record + DURABLE_AT) & 0xFFFF_FFFFL) * RECORD_ALIGNMENT_BYTES;
    }

    public static int keyLength(long record) {
        return Memory.getUnsignedShort(record + KEY_LENGTH_AT);
    }

    public static long keyAddress(long record) {
        return record + RECORD_HEADER_BYTES;
    }

    /// As the other, of a visible record in a log that ends at `end` and may be mapped.
    ///
    /// @throws InternalError where its page could not be read, see [Mapped]
    public static int keyLength(long record, long end) {
        int length = keyLength(record);
        Mapped.requireWithin(keyAddress(record) + length, record, end);
        return length;
    }

    /// As [#keyLength(long, long)].
    ///
    /// @param keyLength of the record
    public static int valueLength(long record, int keyLength, long end) {
        int length = valueLength(record);
        if (length < EntryIterator.TOMBSTONE) {
            throw Mapped.unreadable();
        }
        Mapped.requireWithin(keyAddress(record) + keyLength + Math.max(length, 0), record, end);
        return length;
    }

    /// Bytes of the value, or [EntryIterator#TOMBSTONE].
    public static int valueLength(long record) {
        return Memory.getInt(record + VALUE_LENGTH_AT);
    }

    /// @param keyLength of the record
    public static long valueAddress(long record, int keyLength) {
        return keyAddress(record) + keyLength;
    }
}
