package kv.lsm.table;

import kv.lsm.memory.Allocator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;
import kv.lsm.memory.NativeBuffer;

/// Puts a table's index together; see [BlockIndex].
final class BlockIndexBuilder implements AutoCloseable {
    private final NativeBuffer places;
    private final NativeBuffer separatorStarts;
    private final NativeBuffer separators;
    private int blocks;

    BlockIndexBuilder(Allocator allocator) {
        places = new NativeBuffer(allocator, 8192);
        separatorStarts = new NativeBuffer(allocator, 4096);
        separators = new NativeBuffer(allocator, 8192);
    }

    /// @param separator its first `separatorLength` bytes are at most the block's first key and more than all
    /// keys before it
    /// @param start of the block in the file, a multiple of [SSTableFormat#ALIGNMENT_BYTES]
    void add(long separator, int separatorLength, long start, int bytes, boolean compressed) {
        places.appendInt((int) (start / SSTableFormat.ALIGNMENT_BYTES));
        places.appendInt(compressed ? bytes | BlockIndex.COMPRESSED_BIT : bytes);
        separatorStarts.appendInt((int) separators.size());
        separators.append(separator, separatorLength);
        blocks++;
    }

    /// Bytes that the index will take.
    long bytes() {
        return BlockIndex.HEADER_BYTES + (long) BlockIndex.BYTES_PER_BLOCK * blocks + 4 + separators.size();
    }

    /// Appends the index to `out` and starts over.
    void finish(NativeBuffer out) {
        separatorStarts.appendInt((int) separators.size());
        int commonPrefixLength = commonPrefixLength();
        out.appendInt(blocks);
        out.appendInt(commonPrefixLength);
        out.appendLong(separators.size());
        for (int i = 0; i < blocks; i++) {
            out.appendLong(Keys.prefix(separator(i), separatorLength(i), commonPrefixLength));
        }
        out.append(places);
        out.append(separatorStarts);
        out.append(separators);
        places.clear();
        separatorStarts.clear();
        separators.clear();
        blocks = 0;
    }

    /// Separators are in order, so what the first and the last share, all share.
    private int commonPrefixLength() {
        return Keys.mismatch(separator(0), separatorLength(0), separator(blocks - 1), separatorLength(blocks - 1), 0);
    }

    private long separator(int block) {
        return separators.address() + Memory.getInt(separatorStarts.address() + 4L * block);
    }

    private int separatorLength(int block) {
        long at = separatorStarts.address() + 4L * block;
        return Memory.getInt(at + 4) - Memory.getInt(at);
    }

    @Override
    public void close() {
        places.close();
        separatorStarts.close();
        separators.close();
    }
}
