package kv.lsm.table;

import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import kv.lsm.CorruptionException;
import kv.lsm.ReadMode;
import kv.lsm.StoreException;
import kv.lsm.disk.Closing;
import kv.lsm.disk.Disk;
import kv.lsm.disk.ReadFile;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Checksum;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Mapped;
import kv.lsm.memory.Memory;
import kv.lsm.memory.RefCounted;

/// An open table. Thread-safe while it has an owner.
///
/// Index, filter and hash index are checked when the table is opened. A data block is checked when it is read
/// with a positional read; in a mapped table the first time it is touched, because checking it each time would
/// cost more than the read.
public final class SSTable extends RefCounted {
    /// What [#get] returns for a key that was deleted here. Compared by identity.
    public static final byte[] DELETED = new byte[0];
    /// What [#getCold] returns instead of waiting for the disk. Compared by identity.
    public static final byte[] NOT_CACHED = new byte[0];

    private static final int WHOLE = 1 << 16;
    private static final int SAMPLE_WINDOW = 32;
    /// One key of 16, by its hash, so that readers on several processors seldom write to the same place.
    private static final int SAMPLE_SHIFT = 60;

    private static final int CACHE_LINE_BYTES = 64;
    /// Of an entry; of a larger one the processor itself fetches what follows when that is read.
    private static final int PREFETCH_BYTES = 3 * CACHE_LINE_BYTES;
    private static final HashIndex.Candidates ANY_CANDIDATE = (key, position) -> position;

    private final Disk disk;
    private final Path path;
    private final ReadFile file;
    private final Allocator allocator;
    private final long fileBytes;
    /// Address of byte 0 of the file when mapped, else 0.
    private final long mapped;
    private final SSTableMeta meta;
    /// Of the file before the index.
    private final long dataBytes;
    private final BlockIndex index;
    private final BloomFilter filterOrNull;
    /// Null when not mapped.
    private final CheckedBlocks checkedOrNull;
    private final HashIndex hashIndexOrNull;
    private final boolean hasOldHash;
    private final HashIndex.Candidates candidates = this::entryOf;
    /// Which part of the keys that gets look for here is absent, in [#WHOLE]ths: an exponential mean over the
    /// last [#SAMPLE_WINDOW] sampled keys or so. It begins at all, so that the filter is asked at first.
    /// Written by all readers without a lock: a lost sample does not matter.
    private int shareOfAbsentKeys = WHOLE;
    private final ColdReads coldReads;
    private volatile boolean missesExpected;
    private volatile boolean mergesPastPageCache;

    private SSTable(Disk disk, Path path, ReadFile file, ReadMode mode, Allocator allocator) throws IOException {
        this.disk = disk;
        this.path = path;
        this.file = file;
        this.allocator = allocator;
        fileBytes = file.bytes();
        // an empty file cannot be mapped
        mapped = mode == ReadMode.MMAP && fileBytes >= SSTableFormat.FOOTER_BYTES ? file.map() : 0;
        meta = new SSTableMeta(path, file, mapped, allocator);
        index = meta.index();
        dataBytes = meta.dataBytes();
        filterOrNull = meta.filterOrNull();
        hashIndexOrNull = meta.hashIndexOrNull();
        hasOldHash = meta.hasOldHash();
        checkedOrNull = mapped != 0 ? new CheckedBlocks(dataBytes, allocator) : null;
        coldReads = new ColdReads(this, file, meta, checkedOrNull, mapped);
    }

    /// @throws CorruptionException when footer, index, filter or hash index are not what was written
    public static SSTable open(Disk disk, Path path, ReadMode mode, Allocator allocator) throws IOException {
        return open(disk, path, disk.open(path), mode, allocator);
    }

    /// @param file what `path` names; closed with the table, and if there will be none
    static SSTable open(Disk disk, Path path, ReadFile file, ReadMode mode, Allocator allocator) throws IOException {
        try {
            return new SSTable(disk, path, file, mode, allocator);
        } catch (IOException | RuntimeException | InternalError e) {
            Closing.quietly(file::close, path);
            throw e;
        }
    }

    void require(long offset, String problemOrNull) {
        if (problemOrNull != null) {
            throw new CorruptionException(path, offset, problemOrNull);
        }
    }

    public Path path() {
        return path;
    }

    public long entries() {
        return meta.entries();
    }

    public long fileBytes() {
        return fileBytes;
    }

    /// The first key.
    public byte[] smallest() {
        return index.firstSeparator();
    }

    /// Tells how to read a table some of whose pages are not in memory. What is read in order goes through
    /// buffers of the reader's own then, and a fault brings in one page and not what lies around it, which would
    /// drive out what other reads need. Several threads may tell: what one of them told last holds.
    ///
    /// @param misses true when reads miss pages
    /// @param largerThanMemory true when there will be no room for all tables: what is merged is read past the
    /// page cache
    public synchronized void expectMisses(boolean misses, boolean largerThanMemory) {
        mergesPastPageCache = largerThanMemory;
        if (misses != missesExpected) {
            missesExpected = misses;
            file.expectRandomReads(dataBytes, misses); // and not of filter and hash index, which stay in use
        }
    }

    /// Tells that the file will be deleted. By one thread at a time, before it is.
    public void willBeDeleted() {
        file.willBeDeleted();
    }

    /// Brings the whole table into memory, so far as there is room, or what comes first until `stop`.
    public void warm(BooleanSupplier stop) {
        try (ReadAhead ahead = ReadAhead.throughPageCache(file, allocator)) {
            ahead.readAll(stop);
        } catch (IOException e) { // the get that needs the page that could not be read will tell
            return;
        }
    }

    /// Bytes of the file mapped into memory.
    public long mappedBytes() {
        return mapped == 0 ? 0 : fileBytes;
    }

    /// The hash of `key` as this table uses it.
    ///
    /// @param hash of the key, see [kv.lsm.memory.Keys#hash(byte\[\])]
    public long hashOf(byte[] key, long hash) {
        return hasOldHash ? HashOfVersion2.of(key) : hash;
    }

    @Override
    public long bytesHeld() {
        return mappedBytes() + meta.copiedBytes();
    }

    /// True when the filter should be asked before [#get]. A hash index tells of an absent key with one cache
    /// miss too, as a rule, but of a larger part; so the filter pays where most keys are absent, as in all runs
    /// but the last, and is left out where most are found.
    public boolean shouldAskFilter() {
        return filterOrNull != null && (hashIndexOrNull == null || shareOfAbsentKeys > WHOLE / 2);
    }

    /// Tells whether the key with this hash was absent here, which [#shouldAskFilter] goes by. One key in
    /// sixteen counts.
    public void sampleAbsence(long hash, boolean absent) {
        if (hash >>> SAMPLE_SHIFT != 0 || hashIndexOrNull == null) {
            return;
        }
        int share = shareOfAbsentKeys;
        int step = ((absent ? WHOLE : 0) - share) / SAMPLE_WINDOW;
        if (step != 0) { // or other processors would fetch the line anew for nothing
            shareOfAbsentKeys = share + step;
        }
    }

    /// True when [#get] needs no search among blocks.
    public boolean hasHashIndex() {
        return hashIndexOrNull != null;
    }

    /// False when the key with this hash is surely not here.
    public boolean mayContain(long hash) {
        return filterOrNull == null || filterOrNull.mayContain(hash);
    }

    /// The value of `key`, [#DELETED], or null when the table does not say.
    ///
    /// @param hash of the key, from [#hashOf]; so are those of the other methods
    public byte[] get(byte[] key, long hash, BlockBuffers buffers) {
        return get(key, hash, null, buffers);
    }

    /// @param roomOrNull where the value may be put, and is returned, if it has just its length
    public byte[] get(byte[] key, long hash, byte[] roomOrNull, BlockBuffers buffers) {
        if (hashIndexOrNull != null) {
            return value(hashIndexOrNull.find(key, hash, candidates), key.length, mapped + dataBytes, roomOrNull);
        }
        int block = index.find(key);
        if (block < 0) {
            return null;
        }
        if (mapped != 0 && !index.isCompressed(block)) {
            long stored = storedInPlace(block);
            long end = stored + payloadBytes(block);
            return value(DataBlock.find(stored, end, key), key.length, end, roomOrNull);
        }
        BlockBuffer buffer = buffers.take();
        try {
            long entry = DataBlock.find(load(block, buffer), buffer.end(), key);
            return value(entry, key.length, buffer.end(), roomOrNull);
        } finally {
            buffers.giveBack(buffer);
        }
    }

    /// As [#get] of a table whose pages may not be in memory: on a thread that may not wait for the disk
    /// [#NOT_CACHED] where that is needed, on another with as few pages read as can be.
    ///
    /// @param missed counts the reads that waited for the disk
    public byte[] getCold(byte[] key, long hash, BlockBuffers buffers, boolean mayWait, LongAdder missed) {
        return coldReads.get(key, hash, buffers, mayWait, missed);
    }

    /// False when [#mayContain] would have to wait for the disk. A thread that may wait does so here instead.
    ///
    /// @param missed counts the reads that waited for the disk
    public boolean isFilterThere(long hash, BlockBuffers buffers, boolean mayWait, LongAdder missed) {
        return mapped == 0
                || coldReads.isThere(
                        filterOrNull.lineAddress(hash) - mapped, BloomFilter.LINE_BYTES, buffers, mayWait, missed);
    }

    /// Of the eight bytes that [#get] of a key with this hash looks at first, in filter or hash index; 0 without
    /// a hash index.
    public long addressBeforeEntry(long hash) {
        if (hashIndexOrNull == null) {
            return 0;
        }
        return shouldAskFilter() ? filterOrNull.lineAddress(hash) : hashIndexOrNull.lineAddress(hash);
    }

    /// Of the entry that [#get] looks at then; 0 where there is none, or where the filter is asked before, which
    /// says no to most keys.
    public long addressOfEntry(byte[] key, long hash) {
        if (hashIndexOrNull == null || shouldAskFilter()) {
            return 0;
        }
        long position = hashIndexOrNull.find(key, hash, ANY_CANDIDATE);
        if (position == 0 || position > dataBytes - PREFETCH_BYTES) {
            return 0;
        }
        return mapped + position;
    }

    /// Loads the start of an entry, and whether its block was checked.
    ///
    /// @param address from [#addressOfEntry]
    public long loadEntry(long address) {
        long loaded = checkedOrNull.contains(address - mapped) ? 1 : 0;
        for (int at = 0; at < PREFETCH_BYTES; at += CACHE_LINE_BYTES) {
            loaded += Memory.getByte(address + at);
        }
        return loaded;
    }

    /// As [#get].
    ///
    /// @param entry its address, or 0 for none
    /// @param end of what it lies in
    static byte[] value(long entry, int keyLength, long end, byte[] roomOrNull) {
        if (entry == 0) {
            return null;
        }
        int length = DataBlock.valueLength(entry, keyLength, end);
        return length == EntryIterator.TOMBSTONE
                ? DELETED
                : Memory.copyOf(DataBlock.valueAddress(entry, keyLength), length, roomOrNull);
    }

    /// The address of the entry at `position`, which the hash index names, if it is that of `key`, else 0.
    private long entryOf(byte[] key, long position) {
        if (position + DataBlock.ENTRY_HEADER_BYTES + key.length > dataBytes) {
            return 0;
        }
        if (!checkedOrNull.contains(position)) {
            storedInPlace(index.blockAt(position));
        }
        long entry = mapped + position;
        if (!DataBlock.isOf(entry, key)) {
            return 0;
        }
        entryBytes(entry, position);
        return entry;
    }

    /// Bytes of the entry at `position`, which the hash index names.
    ///
    /// @param entry the address of its first bytes
    int entryBytes(long entry, long position) {
        long bytes = DataBlock.entryEnd(entry) - entry;
        boolean whole = DataBlock.valueLength(entry) >= EntryIterator.TOMBSTONE
                && Long.compareUnsigned(bytes, dataBytes - position) <= 0;
        require(position, whole ? null : "the hash index names what is no entry");
        return (int) bytes;
    }

    /// The entries from `startOrNull` on.
    public SSTableIterator iterator(byte[] startOrNull) {
        return new SSTableIterator(
                this,
                new BlockBuffer(allocator),
                missesExpected ? ReadAhead.throughPageCache(file, allocator) : null,
                startOrNull);
    }

    /// All entries, for a merge: they are read once and the table is deleted then.
    public SSTableIterator mergeIterator() {
        if (!mergesPastPageCache) {
            return iterator(null);
        }
        ReadAhead ahead;
        try {
            ahead = ReadAhead.pastPageCache(disk.openDirect(path), allocator);
        } catch (IOException e) {
            throw new StoreException("cannot open a table: file=" + path + ", reason=" + StoreException.reasonOf(e), e);
        }
        return new SSTableIterator(this, new BlockBuffer(allocator), ahead, null);
    }

    int blocks() {
        return index.blocks();
    }

    /// Where the block starts in the file.
    long blockStart(int block) {
        return index.start(block);
    }

    int blockOf(byte[] key) {
        return index.find(key);
    }

    private int payloadBytes(int block) {
        return index.bytes(block) - SSTableFormat.BLOCK_TRAILER_BYTES;
    }

    /// Address of the plain payload of a block, which ends where `buffer` says then; in it when it cannot be read
    /// in place.
    long load(int block, BlockBuffer buffer) {
        if (mapped == 0) {
            return loadCopy(block, buffer);
        }
        long stored = storedInPlace(block);
        if (!index.isCompressed(block)) {
            return buffer.loaded(stored, payloadBytes(block));
        }
        // The decompressor is machine code, which a page that the disk cannot give would end with the process.
        long copy = buffer.storedRoom(index.bytes(block));
        Memory.copy(stored, copy, index.bytes(block));
        Mapped.throwPending();
        return plain(block, copy, buffer);
    }

    /// As [#load], but from the file even where that is mapped.
    long loadCopy(int block, BlockBuffer buffer) {
        return plain(block, read(block, buffer), buffer);
    }

    /// As [#load], out of what was read ahead; valid until the next call.
    long load(int block, ReadAhead ahead, BlockBuffer buffer) {
        long start = index.start(block);
        try {
            long stored = ahead.at(start, index.bytes(block));
            checkBlock(block, stored);
            return plain(block, stored, buffer);
        } catch (IOException e) {
            throw cannotRead(start, e);
        }
    }

    /// As [MissingPages#bringIn].
    boolean bringIn(long position, long bytes, BlockBuffer buffer) {
        try {
            return MissingPages.bringIn(file, position, bytes, buffer);
        } catch (IOException e) {
            throw cannotRead(position, e);
        }
    }

    /// A copy of `[position, position + bytes)` of the file in `buffer`.
    long read(long position, int bytes, BlockBuffer buffer) {
        long address = buffer.storedRoom(bytes);
        try {
            TimedReads.read(file, position, address, bytes);
        } catch (IOException e) {
            throw cannotRead(position, e);
        }
        return address;
    }

    private StoreException cannotRead(long position, IOException e) {
        return new StoreException("cannot read a table: file=" + path + ", offset=" + position, e);
    }

    private long plain(int block, long stored, BlockBuffer buffer) {
        if (!index.isCompressed(block)) {
            return buffer.loaded(stored, payloadBytes(block));
        }
        int payloadBytes = payloadBytes(block);
        int plainLength = BlockCompressor.plainLength(stored, payloadBytes);
        if (plainLength >= 0) {
            long plain = buffer.plainRoom(plainLength);
            if (BlockCompressor.decompress(stored, payloadBytes, plain, plainLength)) {
                require(index.start(block), DataBlock.problem(plain, plainLength));
                return buffer.loaded(plain, plainLength);
            }
        }
        throw new CorruptionException(path, index.start(block), "a compressed data block cannot be decompressed");
    }

    private long storedInPlace(int block) {
        long start = index.start(block);
        if (!checkedOrNull.contains(start)) {
            checkBlock(block, mapped + start, Checksum.ofMapped(mapped + start, payloadBytes(block)));
            checkedOrNull.add(start, index.bytes(block));
        }
        return mapped + start;
    }

    private long read(int block, BlockBuffer buffer) {
        long address = read(index.start(block), index.bytes(block), buffer);
        checkBlock(block, address);
        return address;
    }

    private void checkBlock(int block, long address) {
        checkBlock(block, address, Checksum.of(address, payloadBytes(block)));
    }

    private void checkBlock(int block, long address, int checksum) {
        int payloadBytes = payloadBytes(block);
        boolean fits = Memory.getInt(address + payloadBytes) == checksum;
        require(index.start(block), fits ? null : "a data block does not match its checksum");
        if (!index.isCompressed(block)) {
            require(index.start(block), DataBlock.problem(address, payloadBytes));
        }
    }

    @Override
    protected void dispose() {
        if (checkedOrNull != null) {
            checkedOrNull.free();
        }
        meta.free();
        Closing.quietly(file::close, path);
    }

    @Override
    public String toString() {
        return path.getFileName().toString();
    }
}
