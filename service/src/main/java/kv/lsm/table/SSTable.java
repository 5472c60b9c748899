package kv.lsm.table;

import java.io.IOException;
import java.nio.file.Path;
import kv.lsm.CorruptionException;
import kv.lsm.ReadMode;
import kv.lsm.StoreException;
import kv.lsm.disk.Disk;
import kv.lsm.disk.ReadFile;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Checksum;
import kv.lsm.memory.Memory;
import kv.lsm.memory.Shared;

/// An open table. Thread-safe while it has an owner.
///
/// Index and filter are checked when the table is opened. A data block is checked when it is read with a positional read; in
/// a mapped table the first time it is touched, because checking it each time would cost more than the read.
public final class SSTable extends Shared {
    /// What [#get] returns for a key that was deleted here. Compared by identity.
    public static final byte[] DELETED = new byte[0];

    private final Path path;
    private final ReadFile file;
    private final Allocator allocator;
    private final long fileBytes;
    /// Address of byte 0 of the file when mapped, else 0.
    private final long mapped;
    private final SSTableMeta meta;
    private final BlockIndex index;
    private final BloomFilter filterOrNull;
    /// One byte per block, 1 when it was checked; 0 when not mapped.
    private final long checked;

    private SSTable(Path path, ReadFile file, ReadMode mode, Allocator allocator) throws IOException {
        this.path = path;
        this.file = file;
        this.allocator = allocator;
        fileBytes = file.bytes();
        // an empty file cannot be mapped
        mapped = mode == ReadMode.MMAP && fileBytes >= SSTableFormat.FOOTER_BYTES ? file.map() : 0;
        meta = new SSTableMeta(path, file, mapped, allocator);
        index = meta.index();
        filterOrNull = meta.filterOrNull();
        checked = mapped != 0 ? allocator.allocate(index.blocks()) : 0;
    }

    /// @throws CorruptionException when footer, index or filter are not what was written
    public static SSTable open(Disk disk, Path path, ReadMode mode, Allocator allocator) throws IOException {
        ReadFile file = disk.open(path);
        try {
            return new SSTable(path, file, mode, allocator);
        } catch (IOException | RuntimeException e) {
            file.close();
            throw e;
        }
    }

    private void require(long offset, String problemOrNull) {
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

    /// Bytes of the file mapped into memory.
    public long mappedBytes() {
        return mapped == 0 ? 0 : fileBytes;
    }

    public boolean hasFilter() {
        return filterOrNull != null;
    }

    /// False when the key with this hash is surely not here.
    public boolean mayContain(long hash) {
        return filterOrNull == null || filterOrNull.mayContain(hash);
    }

    /// The value of `key`, [#DELETED], or null when the table does not say.
    ///
    /// @param hash of the key
    public byte[] get(byte[] key, long hash, BlockBuffers buffers) {
        int block = index.find(key);
        if (block < 0) {
            return null;
        }
        if (mapped != 0 && !index.isCompressed(block)) {
            return get(key, hash, storedInPlace(block), payloadBytes(block));
        }
        BlockBuffer buffer = buffers.take();
        try {
            long payload = load(block, buffer);
            return get(key, hash, payload, plainBytes(block, buffer));
        } finally {
            buffers.giveBack(buffer);
        }
    }

    private static byte[] get(byte[] key, long hash, long payload, int payloadBytes) {
        int found = DataBlock.find(payload, key, hash);
        if (found < 0) {
            return null;
        }
        int count = DataBlock.count(payload);
        long entry = DataBlock.entry(payload, count, found);
        if (DataBlock.isTombstone(entry)) {
            return DELETED;
        }
        int valueLength = DataBlock.valueLength(entry, DataBlock.entryEnd(payload, payloadBytes, count, found));
        return Memory.copyOf(DataBlock.keyAddress(entry) + DataBlock.keyLength(entry), valueLength);
    }

    /// The entries from `startOrNull` on.
    public SSTableIterator iterator(byte[] startOrNull) {
        return new SSTableIterator(this, new BlockBuffer(allocator), startOrNull);
    }

    int blocks() {
        return index.blocks();
    }

    int blockOf(byte[] key) {
        return index.find(key);
    }

    private int payloadBytes(int block) {
        return index.bytes(block) - SSTableFormat.BLOCK_TRAILER_BYTES;
    }

    /// Address of the plain payload of a block; in `buffer` when it cannot be read in place.
    long load(int block, BlockBuffer buffer) {
        long stored = mapped != 0 ? storedInPlace(block) : read(block, buffer);
        if (!index.isCompressed(block)) {
            return stored;
        }
        int payloadBytes = payloadBytes(block);
        int plainLength = BlockCompressor.plainLength(stored, payloadBytes);
        if (plainLength >= 0) {
            // the padding allows the search for tags to read ahead
            long plain = buffer.plainRoom(plainLength + Long.BYTES);
            if (BlockCompressor.decompress(stored, payloadBytes, plain, plainLength)) {
                require(index.start(block), DataBlock.problem(plain, plainLength));
                buffer.plainLength = plainLength;
                return plain;
            }
        }
        throw new CorruptionException(path, index.start(block), "a compressed data block cannot be decompressed");
    }

    /// Bytes of the plain payload that [#load] just gave for `block` with `buffer`.
    int plainBytes(int block, BlockBuffer buffer) {
        return index.isCompressed(block) ? buffer.plainLength : payloadBytes(block);
    }

    private long storedInPlace(int block) {
        long address = mapped + index.start(block);
        if (Memory.getByte(checked + block) == 0) {
            checkBlock(block, address);
            Memory.putByte(checked + block, (byte) 1);
        }
        return address;
    }

    private long read(int block, BlockBuffer buffer) {
        int bytes = index.bytes(block);
        long address = buffer.storedRoom(bytes + Long.BYTES);
        try {
            file.read(index.start(block), address, bytes);
        } catch (IOException e) {
            throw new StoreException("cannot read a table: file=" + path + ", offset=" + index.start(block), e);
        }
        checkBlock(block, address);
        return address;
    }

    private void checkBlock(int block, long address) {
        int payloadBytes = payloadBytes(block);
        if (Memory.getInt(address + payloadBytes) != Checksum.of(address, payloadBytes)) {
            throw new CorruptionException(path, index.start(block), "a data block does not match its checksum");
        }
        if (!index.isCompressed(block)) {
            require(index.start(block), DataBlock.problem(address, payloadBytes));
        }
    }

    @Override
    protected void dispose() {
        if (checked != 0) {
            allocator.free(checked, index.blocks());
        }
        meta.free();
        try {
            file.close();
        } catch (IOException e) {
            throw new StoreException("cannot close a table: file=" + path, e);
        }
    }

    @Override
    public String toString() {
        return path.getFileName().toString();
    }
}
