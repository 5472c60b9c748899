package kv.lsm.table;

import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;

/// Remembers which blocks of a mapped table were checked: one bit per 64 bytes of the file, in which no two
/// blocks have a part. Thread-safe; a block that two threads meet at once is checked twice.
final class CheckedBlocks {
    private static final int BYTES_PER_BIT = SSTableFormat.ALIGNMENT_BYTES;
    private static final int BIT_SHIFT = Integer.numberOfTrailingZeros(BYTES_PER_BIT);
    private static final int WORD_SHIFT = BIT_SHIFT + 6;

    private final Allocator allocator;
    private final long bits;
    private final long bitsBytes;

    /// Holds an eighth of a byte per 64 bytes of data until [#free].
    ///
    /// @param dataBytes bytes of the file before the index
    CheckedBlocks(long dataBytes, Allocator allocator) {
        this.allocator = allocator;
        bitsBytes = ((dataBytes >>> WORD_SHIFT) + 1) * Long.BYTES;
        bits = allocator.allocate(bitsBytes);
    }

    /// True when the block with the byte at `position` was marked.
    boolean contains(long position) {
        return (Memory.getLong(word(position)) >>> (position >>> BIT_SHIFT) & 1) != 0;
    }

    /// @param start of the block in the file
    void add(long start, int bytes) {
        long end = start + bytes;
        for (long from = start; from < end; from = (from >>> WORD_SHIFT) + 1 << WORD_SHIFT) {
            long lastInWord = Math.min(end - 1, from | (1L << WORD_SHIFT) - 1);
            long upToLast = -1L >>> 63 - (lastInWord >>> BIT_SHIFT & 63);
            Memory.orLong(word(from), upToLast & -1L << (from >>> BIT_SHIFT));
        }
    }

    private long word(long position) {
        return bits + (position >>> WORD_SHIFT) * Long.BYTES;
    }

    void free() {
        allocator.free(bits, bitsBytes);
    }
}
