package kv.lsm;

import java.io.Closeable;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import kv.lsm.disk.Closing;
import kv.lsm.disk.ReadFile;
import kv.lsm.log.WriteAheadLogFormat;
import kv.lsm.log.WriteAheadLogWriter;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;
import kv.lsm.memory.RefCounted;
import kv.lsm.table.SSTable;

/// The entries of one write-ahead log: its records, where they lie, and an index over them.
///
/// 1. One thread at a time indexes; any number read meanwhile.
/// 2. Readers see indexed records only. With [WalMode#ALWAYS] a record is indexed after it was made durable, so
///    nobody reads what a crash could take back.
/// 3. A memtable is frozen when nobody adds records any more; then nothing in it changes.
final class Memtable extends RefCounted {
    private static final int CHUNK_BYTES_MIN = 4 << 10;
    private static final int CHUNK_BYTES_MAX = 1 << 20;
    private static final VarHandle INDEXED_END;

    static {
        try {
            INDEXED_END = MethodHandles.lookup().findVarHandle(Memtable.class, "indexedEnd", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final long logNumber;
    private final WriteAheadLogWriter writerOrNull;
    /// What holds the records' memory.
    private final Closeable holder;
    private final long mappedBytes;
    private final NodeArena arena;
    private final RadixTree index;
    private final MemtableFilter filter;
    private final long log;
    /// Behind the log's last byte.
    private final long logEnd;

    private long indexedEnd;

    private Memtable(
            long logNumber,
            long log,
            long logBytes,
            WriteAheadLogWriter writerOrNull,
            Closeable holder,
            long mappedBytes,
            Allocator allocator,
            long bytesMax) {
        this.mappedBytes = mappedBytes;
        this.logNumber = logNumber;
        this.log = log;
        logEnd = log + logBytes;
        this.writerOrNull = writerOrNull;
        this.holder = holder;
        arena = new NodeArena(allocator, (int) Math.clamp(bytesMax / 16, CHUNK_BYTES_MIN, CHUNK_BYTES_MAX));
        index = new RadixTree(arena);
        filter = new MemtableFilter(allocator, bytesMax);
        indexedEnd = log + WriteAheadLogFormat.HEADER_BYTES;
    }

    /// An empty memtable for a new log.
    static Memtable active(WriteAheadLogWriter writer, Allocator allocator, long bytesMax) {
        return new Memtable(
                writer.number(),
                writer.address(),
                writer.bytes(),
                writer,
                writer::close,
                writer.mappedBytes(),
                allocator,
                bytesMax);
    }

    /// An empty memtable for the records of an existing log.
    ///
    /// @param file mapped at `log`; closed with the memtable
    static Memtable replayed(long logNumber, long log, ReadFile file, Allocator allocator) {
        return new Memtable(logNumber, log, file.bytes(), null, file::close, file.bytes(), allocator, file.bytes());
    }

    long logNumber() {
        return logNumber;
    }

    /// The log, which only an active memtable and those frozen since the store was opened have.
    WriteAheadLogWriter writer() {
        return writerOrNull;
    }

    /// Address of the log's first byte.
    long logAddress() {
        return log;
    }

    boolean isReplayed() {
        return writerOrNull == null;
    }

    /// Makes the record visible, or, where one begins a batch, all records of the batch at once for those who
    /// read up to [#limit]; records are indexed in the order of the log.
    void index(long record) {
        long end = record;
        if (WriteAheadLogFormat.isBatch(record)) {
            long batchEnd = record + WriteAheadLogFormat.batchBytes(record);
            for (end += WriteAheadLogFormat.BATCH_HEADER_BYTES; end < batchEnd; ) {
                end = insert(end);
            }
        } else {
            end = insert(record);
        }
        INDEXED_END.setRelease(this, end);
    }

    /// The end of the record.
    private long insert(long record) {
        int keyLength = WriteAheadLogFormat.keyLength(record);
        filter.add(Keys.hash(WriteAheadLogFormat.keyAddress(record), keyLength));
        index.insert(record);
        return record + WriteAheadLogFormat.recordBytes(record);
    }

    /// Indexes the records of the log that lie before `end`, bytes from its start.
    void indexUpTo(long end) {
        while (indexedEnd < log + end) {
            index(indexedEnd);
        }
    }

    /// Records below this address are visible to readers that start now.
    long limit() {
        return (long) INDEXED_END.getAcquire(this);
    }

    /// Where the visible records end, bytes from the start of the log.
    long indexedEnd() {
        return limit() - log;
    }

    boolean isEmpty() {
        return indexedEnd() == WriteAheadLogFormat.HEADER_BYTES;
    }

    /// Bytes of the records and of the index, without its filter, which has its size from the start.
    long bytes() {
        return (writerOrNull == null ? indexedEnd() : writerOrNull.end()) + arena.allocatedBytes();
    }

    /// Bytes of files mapped into memory.
    long mappedBytes() {
        return mappedBytes;
    }

    @Override
    public long bytesHeld() {
        return logEnd - log + arena.allocatedBytes() + filter.bytes();
    }

    /// The value of `key`, [SSTable#DELETED], or null when the memtable does not say.
    ///
    /// @param hash of the key, see [Keys#hash(byte\[\])]
    /// @param roomOrNull where the value may be put, and is returned, if it has just its length
    byte[] get(byte[] key, long hash, byte[] roomOrNull) {
        if (!mayContain(hash)) {
            return null;
        }
        long record = index.find(key);
        if (record == 0) {
            return null;
        }
        int valueLength = WriteAheadLogFormat.valueLength(record, key.length, logEnd);
        return valueLength == EntryIterator.TOMBSTONE
                ? SSTable.DELETED
                : Memory.copyOf(WriteAheadLogFormat.valueAddress(record, key.length), valueLength, roomOrNull);
    }

    /// False when no record has the key with this hash.
    boolean mayContain(long hash) {
        return filter.mayContain(hash);
    }

    /// Loads the word of the filter that [#get] looks at.
    long prefetchFilter(long hash) {
        return filter.prefetch(hash);
    }

    /// Loads what [#get] of the first `count` keys looks at behind the filter.
    ///
    /// @param room for so many keys
    /// @return a number made of all that was loaded
    long prefetchIndex(byte[][] keys, int count, PrefetchRoom room) {
        return index.prefetch(keys, count, room);
    }

    /// Loads what [#index] of records of the first `count` keys will look at.
    ///
    /// @param room for so many keys
    /// @return a number made of all that was loaded
    long prefetchWrites(byte[][] keys, int count, PrefetchRoom room) {
        long loaded = prefetchIndex(keys, count, room);
        for (int i = 0; i < count; i++) {
            loaded += filter.prefetch(Keys.hash(keys[i]));
        }
        return loaded;
    }

    /// The entries from `startOrNull` on, of records below `limit`.
    EntryIterator iterator(byte[] startOrNull, long limit) {
        return new RadixTreeIterator(index, startOrNull, limit, logEnd);
    }

    @Override
    protected void dispose() {
        arena.free();
        filter.free();
        Closing.quietly(holder, FileNames.log(logNumber));
    }

    @Override
    public String toString() {
        return "memtable of " + FileNames.log(logNumber);
    }
}
