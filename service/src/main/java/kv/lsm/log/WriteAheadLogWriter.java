package kv.lsm.log;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.zip.CRC32C;
import kv.lsm.WriteBatch;
import kv.lsm.disk.LogFile;
import kv.lsm.memory.Mapped;
import kv.lsm.memory.Memory;

/// Appends records to one write-ahead log.
///
/// 1. One thread at a time appends (the store's write lock); one at a time syncs; any thread may ask for the
///    ends.
/// 2. [#end] never passes a record that is not complete.
/// 3. [#durableEnd] grows only when a sync has succeeded.
public final class WriteAheadLogWriter {
    private static final VarHandle END;

    static {
        try {
            END = MethodHandles.lookup().findVarHandle(WriteAheadLogWriter.class, "end", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final LogFile file;
    private final WriteAheadLogFormat.Header header;
    private final boolean checksummed;
    private final long address;
    private final ByteBuffer view;
    private final CRC32C crc = new CRC32C();
    private long end = WriteAheadLogFormat.HEADER_BYTES;
    private volatile long durableEnd;

    /// Starts the log by writing its header.
    ///
    /// @param checksummed false for a log that is never read back (memory only)
    public WriteAheadLogWriter(LogFile file, WriteAheadLogFormat.Header header, boolean checksummed) {
        this.file = file;
        this.header = header;
        this.checksummed = checksummed;
        address = file.address();
        view = Memory.buffer(address, file.bytes());
        WriteAheadLogFormat.writeHeader(address, header);
    }

    public long number() {
        return header.number();
    }

    /// What the header of the log after this one says: where the records before it end. An empty log is passed
    /// over, because its own header may never reach the disk.
    public WriteAheadLogFormat.Header next(long number) {
        return end() > WriteAheadLogFormat.HEADER_BYTES
                ? new WriteAheadLogFormat.Header(number, number(), end())
                : new WriteAheadLogFormat.Header(number, header.previousNumber(), header.previousEnd());
    }

    public long address() {
        return address;
    }

    /// Of the file, whatever is written of it.
    public long bytes() {
        return file.bytes();
    }

    /// Bytes of the file mapped into memory.
    public long mappedBytes() {
        return file.isMapped() ? file.bytes() : 0;
    }

    public boolean hasRoom(long recordBytes) {
        // leaves room for the record of an orderly close
        return end + recordBytes + WriteAheadLogFormat.recordBytes(0, 0) <= file.bytes();
    }

    /// Appends a record and returns its address; [#hasRoom] must have said yes. A null value is a tombstone.
    public long append(byte[] key, byte[] valueOrNull) {
        long record = address + end;
        WriteAheadLogFormat.writeRecord(record, durableEnd, key, valueOrNull);
        Mapped.throwPending(); // the checksum's machine code cannot be left by an error
        int valueLength = valueOrNull == null ? 0 : valueOrNull.length;
        if (checksummed) {
            WriteAheadLogFormat.writeChecksum(view, number(), (int) end, key.length, valueLength, crc);
        }
        Mapped.throwPending(); // or others would stand behind a record that is none
        END.setRelease(this, end + WriteAheadLogFormat.recordBytes(key.length, valueLength));
        return record;
    }

    /// Appends several records as one and returns the address of the record that begins them; [#hasRoom] must
    /// have said yes to all of them.
    public long append(List<WriteBatch.Write> writes) {
        long batch = address + end;
        long bytes = WriteAheadLogFormat.batchBytes(writes);
        long at = end + WriteAheadLogFormat.BATCH_HEADER_BYTES;
        // before the records: whole records behind a place that holds none are damage, not what a killed
        // process leaves
        WriteAheadLogFormat.writeBatchHeader(
                batch, WriteAheadLogFormat.place(number(), end), durableEnd, writes.size(), (int)
                        (bytes - WriteAheadLogFormat.BATCH_HEADER_BYTES));
        for (WriteBatch.Write write : writes) {
            WriteAheadLogFormat.writeRecord(address + at, durableEnd, write.key(), write.valueOrNull());
            Mapped.throwPending();
            int valueLength = write.valueOrNull() == null ? 0 : write.valueOrNull().length;
            if (checksummed) {
                WriteAheadLogFormat.writeChecksum(view, number(), (int) at, write.key().length, valueLength, crc);
            }
            at += WriteAheadLogFormat.recordBytes(write.key().length, valueLength);
        }
        Mapped.throwPending();
        END.setRelease(this, end + bytes);
        return batch;
    }

    /// Leaves a mark that all before it was made durable and nothing follows; needs a sync of its own.
    public void appendClosed() {
        WriteAheadLogFormat.writeClosed(address + end, WriteAheadLogFormat.place(number(), end), durableEnd);
        END.setRelease(this, end + WriteAheadLogFormat.recordBytes(0, 0));
    }

    /// Where the next record goes, bytes from the start of the file.
    public long end() {
        return (long) END.getAcquire(this);
    }

    /// Bytes from the start of the file that are known to be durable.
    public long durableEnd() {
        return durableEnd;
    }

    /// Makes everything up to [#end] durable and returns that end.
    public long sync() throws IOException {
        long target = end();
        if (target > durableEnd) {
            file.sync(durableEnd, target);
            durableEnd = target;
        }
        return target;
    }

    /// Lets go of the memory; the log's records must not be read any more.
    public void close() throws IOException {
        file.close();
    }
}
