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
/// header   magic 8 │ version 4 │ crc 4 │ number 8 │ previous number 8 │ previous end 8 │ version 4 │ zeros
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
    public static final int VERSION = 3;
    /// Checksums do not hold the place of their record; is still read, and so is 1, which has no batches either.
    private static final int VERSION_WITHOUT_PLACES = 2;
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
    /// The version once more, where the header's checksum holds it.
    private static final int VERSION_AGAIN_AT = 40;

    /// Odd, so that each number and each place changes the checksum in another way.
    static final int NUMBER_FACTOR = 0x9E3779B1;
    static final int PLACE_FACTOR = 0x85EBCA77;

    /// From here on the checksum holds a record.
    static final int DURABLE_AT = 4;
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
        Memory.putInt(log + VERSION_AGAIN_AT, VERSION);
        Memory.putInt(log + HEADER_CRC_AT, headerChecksum(log));
    }

    /// Null when the bytes are no header.
    static Header readHeader(long log) {
        boolean isHeader = Memory.getLong(log) == MAGIC
                && unknownVersion(log) == 0
                && Memory.getInt(log + VERSION_AGAIN_AT) == (hasPlaces(log) ? VERSION : 0)
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
        return isLog && (version < 1 || version > VERSION) ? version : 0;
    }

    /// True when the checksums of a log whose header is valid hold the places of their records.
    static boolean hasPlaces(long log) {
        return Memory.getInt(log + VERSION_AT) > VERSION_WITHOUT_PLACES;
    }

    private static int headerChecksum(long log) {
        return Checksum.ofMapped(log + NUMBER_AT, HEADER_BYTES - NUMBER_AT);
    }

    /// Bytes that a record takes in the log.
    public static long recordBytes(int keyLength, int valueLength) {
        return aligned(RECORD_HEADER_BYTES + keyLength + Math.max(valueLength, 0L));
    }

    static long aligned(long bytes) {
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
    ///
    /// @param number of the log
    static void writeChecksum(ByteBuffer log, long number, int offset, int keyLength, int valueLength, CRC32C crc) {
        crc.reset();
        log.limit(offset + RECORD_HEADER_BYTES + keyLength + Math.max(valueLength, 0))
                .position(offset + DURABLE_AT);
        crc.update(log);
        log.limit(log.capacity());
        log.putInt(offset, (int) crc.getValue() ^ place(number, offset));
    }

    /// Bytes of a record from its first to the end of its value, or -1 when its lengths are none.
    ///
    /// @param keyLength of the record
    static long contentLength(long record, int keyLength) {
        int valueLength = valueLength(record);
        boolean isMark = valueLength == CLOSED_VALUE_LENGTH || valueLength == BATCH_VALUE_LENGTH;
        if (isMark != (keyLength == 0) || valueLength < BATCH_VALUE_LENGTH) {
            return -1;
        }
        int valueBytes = valueLength == BATCH_VALUE_LENGTH ? BATCH_CONTENT_BYTES : Math.max(valueLength, 0);
        return RECORD_HEADER_BYTES + keyLength + (long) valueBytes;
    }

    /// CRC-32C of a record that may lie in a mapped file.
    static int checksum(long record, long contentLength) {
        return Checksum.ofMapped(record + DURABLE_AT, contentLength - DURABLE_AT);
    }

    /// What the checksum of a record is changed by, so that it holds for this log and this place only.
    ///
    /// @param number of the log
    /// @param at where the record begins, bytes
    static int place(long number, long at) {
        return (int) number * NUMBER_FACTOR + (int) (at / RECORD_ALIGNMENT_BYTES) * PLACE_FACTOR;
    }

    /// The value length of the record without a key that begins a batch.
    static final int BATCH_VALUE_LENGTH = -3;

    /// Of the record that begins a batch: number and bytes of the records that follow.
    private static final int BATCH_CONTENT_BYTES = 8;
    public static final int BATCH_HEADER_BYTES = 24;
    /// Of a batch: a log with the largest one is shorter than 2 GiB, whole pages as it is, with its header and the
    /// record of an orderly close.
    public static final long BATCH_BYTES_MAX = (1L << 31) - 3 * 4096;
    private static final int BATCH_RECORDS_AT = 14;
    private static final int BATCH_BYTES_AT = 18;

    /// @param place of the record, as [#place] tells it
    static void writeBatchHeader(long record, int place, long durable, int records, int bytes) {
        Memory.putInt(record + DURABLE_AT, (int) (durable / RECORD_ALIGNMENT_BYTES));
        Memory.putInt(record + VALUE_LENGTH_AT, BATCH_VALUE_LENGTH);
        Memory.putShort(record + KEY_LENGTH_AT, 0);
        Memory.putInt(record + BATCH_RECORDS_AT, records);
        Memory.putInt(record + BATCH_BYTES_AT, bytes);
        Memory.putInt(record, checksum(record, RECORD_HEADER_BYTES + BATCH_CONTENT_BYTES) ^ place);
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

    /// The value length of the record without a key that an orderly close leaves at the end.
    static final int CLOSED_VALUE_LENGTH = -2;

    static boolean isClosed(long record) {
        return valueLength(record) == CLOSED_VALUE_LENGTH;
    }

    /// @param place of the record, as [#place] tells it
    static void writeClosed(long record, int place, long durable) {
        Memory.putInt(record + DURABLE_AT, (int) (durable / RECORD_ALIGNMENT_BYTES));
        Memory.putInt(record + VALUE_LENGTH_AT, CLOSED_VALUE_LENGTH);
        Memory.putShort(record + KEY_LENGTH_AT, 0);
        Memory.putInt(record, checksum(record, RECORD_HEADER_BYTES) ^ place);
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
