package kv.lsm.table;

import java.io.IOException;
import java.nio.file.Path;
import kv.lsm.CorruptionException;
import kv.lsm.disk.ReadFile;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Checksum;
import kv.lsm.memory.Mapped;

/// What of a table is read and checked once, when it is opened: footer, index, filter and, of a mapped table,
/// hash index. The index is copied to native memory, some 36 bytes a block; the others are read in place in a
/// mapped table, and the filter is copied, too, of another. Immutable.
final class SSTableMeta {
    private final Path path;
    private final Allocator allocator;
    /// The native copy of the index, and of the filter where the file is not mapped.
    private final long copy;
    private final long copyBytes;
    private final SSTableFormat.Footer footer;
    private final BlockIndex index;
    private final BloomFilter filterOrNull;
    private final HashIndex hashIndexOrNull;

    /// @param mapped address of byte 0 of the file when it is mapped, else 0
    /// @throws CorruptionException when a part is not what was written
    SSTableMeta(Path path, ReadFile file, long mapped, Allocator allocator) throws IOException {
        this.path = path;
        this.allocator = allocator;
        if (file.bytes() < SSTableFormat.FOOTER_BYTES) {
            throw new CorruptionException(path, 0, "the table is shorter than its footer: bytes=" + file.bytes());
        }
        footer = readFooter(file);
        long copyEnd = mapped != 0 ? footer.filterOffset() : footer.hashIndexOffset();
        copyBytes = copyEnd - footer.indexOffset();
        copy = allocator.allocate(copyBytes);
        try (BlockBuffer buffer = new BlockBuffer(allocator)) {
            file.read(footer.indexOffset(), copy, Math.toIntExact(copyBytes));
            if (mapped != 0) {
                MissingPages.bringIn(file, footer.filterOffset(), file.bytes() - footer.filterOffset(), buffer);
            }
            index = readIndex(copy);
            filterOrNull = readFilter(
                    mapped != 0 ? mapped + footer.filterOffset() : copy + footer.filterOffset() - footer.indexOffset());
            hashIndexOrNull = mapped == 0 ? null : readHashIndex(mapped + footer.hashIndexOffset());
            Mapped.throwPending();
        } catch (IOException | RuntimeException | InternalError e) { // the last: of a mapped page that cannot be read
            free();
            throw e;
        }
    }

    private SSTableFormat.Footer readFooter(ReadFile file) throws IOException {
        long offset = file.bytes() - SSTableFormat.FOOTER_BYTES;
        long address = allocator.allocate(SSTableFormat.FOOTER_BYTES);
        try {
            file.read(offset, address, SSTableFormat.FOOTER_BYTES);
            require(offset, SSTableFormat.footerProblem(address));
            SSTableFormat.Footer read = SSTableFormat.readFooter(address);
            require(offset, fits(read, offset) ? null : "the footer does not fit the file: " + read);
            return read;
        } finally {
            allocator.free(address, SSTableFormat.FOOTER_BYTES);
        }
    }

    /// True when the parts follow one another and end where the footer starts; offsets first, so that no sum
    /// can overflow.
    private static boolean fits(SSTableFormat.Footer footer, long footerOffset) {
        return 0 <= footer.indexOffset()
                && footer.indexOffset() <= footer.filterOffset()
                && footer.filterOffset() <= footer.hashIndexOffset()
                && footer.hashIndexOffset() <= footerOffset
                && 0 <= footer.indexBytes()
                && footer.indexBytes() <= footer.filterOffset() - footer.indexOffset()
                && footer.filterBytes() == footer.hashIndexOffset() - footer.filterOffset()
                && footer.hashIndexBytes() == footerOffset - footer.hashIndexOffset();
    }

    private BlockIndex readIndex(long address) {
        check(footer.indexOffset(), address, footer.indexBytes(), footer.indexCrc(), "the index");
        require(footer.indexOffset(), BlockIndex.problem(address, footer.indexBytes()));
        BlockIndex read = new BlockIndex(address, allocator);
        String problemOrNull = read.problemWithBlocks(footer.indexOffset());
        if (problemOrNull != null) {
            read.free();
        }
        require(footer.indexOffset(), problemOrNull);
        return read;
    }

    /// Null when the table has none.
    private BloomFilter readFilter(long address) {
        check(footer.filterOffset(), address, footer.filterBytes(), footer.filterCrc(), "the filter");
        if (footer.filterBytes() == 0) {
            return null;
        }
        require(footer.filterOffset(), BloomFilter.problem(address, footer.filterBytes()));
        return new BloomFilter(address);
    }

    /// Null when the table has none.
    private HashIndex readHashIndex(long address) {
        check(footer.hashIndexOffset(), address, footer.hashIndexBytes(), footer.hashIndexCrc(), "the hash index");
        if (footer.hashIndexBytes() == 0) {
            return null;
        }
        require(footer.hashIndexOffset(), HashIndex.problem(address, footer.hashIndexBytes()));
        return new HashIndex(address);
    }

    /// Filter and hash index are mapped, or copies.
    private void check(long offset, long address, long bytes, int crc, String part) {
        if (Checksum.ofMapped(address, bytes) != crc) {
            require(offset, part + " does not match its checksum");
        }
    }

    private void require(long offset, String problemOrNull) {
        if (problemOrNull != null) {
            throw new CorruptionException(path, offset, problemOrNull);
        }
    }

    long entries() {
        return footer.entries();
    }

    /// True when filter and hash index are made of [HashOfVersion2].
    boolean hasOldHash() {
        return footer.version() == SSTableFormat.VERSION_WITH_OLD_HASH;
    }

    BlockIndex index() {
        return index;
    }

    BloomFilter filterOrNull() {
        return filterOrNull;
    }

    /// Null when the table has none or is not mapped.
    HashIndex hashIndexOrNull() {
        return hashIndexOrNull;
    }

    /// Bytes of the file before the index.
    long dataBytes() {
        return footer.indexOffset();
    }

    /// Of index and filter, in native memory.
    long copiedBytes() {
        return copyBytes;
    }

    void free() {
        if (index != null) { // null when the table could not be opened
            index.free();
        }
        if (copy != 0) {
            allocator.free(copy, copyBytes);
        }
    }
}
