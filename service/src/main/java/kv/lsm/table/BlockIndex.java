package kv.lsm.table;

import kv.lsm.memory.Allocator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;

/// Finds the data block that may hold a key; reads the index part of a table where it lies.
///
/// ```
/// blocks n 4 │ common prefix length 4 │ separators bytes 8
/// key number 8 × n │ (block start 4 │ block bytes 4) × n │ separator start 4 × (n + 1) │ separators
/// ```
///
/// A block's separator is at most its first key and greater than all keys before it. All separators of a table
/// begin with the common prefix; the key number is the eight bytes behind it, so that the search compares
/// numbers in one array and looks at whole separators only where numbers are equal. Block starts count in units
/// of 64 bytes; block bytes include the checksum, and their highest bit is set when the block is compressed.
///
/// Every eighth number is copied to memory of the index's own, the fences: all tables' fences stay in the
/// processor's cache, where the numbers themselves do not, and between two fences lies one cache line of
/// numbers. So a search waits for memory once, not a few times.
final class BlockIndex {
    static final int HEADER_BYTES = 16;
    static final int BYTES_PER_BLOCK = 8 + (4 + 4) + 4;
    static final int COMPRESSED_BIT = 0x8000_0000;

    private static final int GROUP = 8;
    /// Numbers before the first fence: behind the header they fill the first cache line of an index, which
    /// starts with one.
    private static final int BEFORE_FENCES = (SSTableFormat.ALIGNMENT_BYTES - HEADER_BYTES) / Long.BYTES;

    private final int blocks;
    /// On the heap: each search begins with it, and it is a few bytes per table.
    private final byte[] commonPrefix;
    private final long numbers;
    private final long places;
    private final long separatorStarts;
    private final long separators;
    private final long separatorsBytes;
    private final Allocator allocator;
    private final int fenceCount;
    private final long fences;

    /// Holds one byte per block of native memory until [#free].
    ///
    /// @param address of an index part that [#problem] found nothing wrong with
    BlockIndex(long address, Allocator allocator) {
        this.allocator = allocator;
        blocks = Memory.getInt(address);
        numbers = address + HEADER_BYTES;
        places = numbers + 8L * blocks;
        separatorStarts = places + 8L * blocks;
        separators = separatorStarts + 4L * (blocks + 1);
        separatorsBytes = Memory.getLong(address + 8);
        commonPrefix = Memory.copyOf(separators, Memory.getInt(address + 4));
        fenceCount = Math.max(0, blocks - BEFORE_FENCES + GROUP - 1) / GROUP;
        fences = fenceCount == 0 ? 0 : allocator.allocate((long) Long.BYTES * fenceCount);
        for (int i = 0; i < fenceCount; i++) {
            Memory.putLong(fences + 8L * i, number(BEFORE_FENCES + GROUP * i));
        }
    }

    void free() {
        if (fences != 0) {
            allocator.free(fences, (long) Long.BYTES * fenceCount);
        }
    }

    /// What is wrong with an index part, or null.
    static String problem(long address, long bytes) {
        if (bytes < HEADER_BYTES) {
            return "the index is too short";
        }
        long blocks = Memory.getInt(address);
        long commonPrefixLength = Memory.getInt(address + 4);
        long separatorsBytes = Memory.getLong(address + 8);
        if (blocks < 1
                || commonPrefixLength < 0
                || commonPrefixLength > separatorsBytes
                || bytes != HEADER_BYTES + BYTES_PER_BLOCK * blocks + 4 + separatorsBytes) {
            return "the index does not fit its size: blocks=" + blocks + ", bytes=" + bytes;
        }
        return null;
    }

    /// What is wrong with the places of the blocks and separators, or null.
    ///
    /// @param dataBytes bytes of the file before the index
    String problemWithBlocks(long dataBytes) {
        int separatorStart = Memory.getInt(separatorStarts);
        long blockEnd = 0;
        if (separatorStart != 0 || Memory.getInt(separatorStarts + 4L * blocks) != separatorsBytes) {
            return "the index's separators do not fit it";
        }
        for (int i = 0; i < blocks; i++) {
            int separatorEnd = Memory.getInt(separatorStarts + 4L * (i + 1));
            if (bytes(i) <= SSTableFormat.BLOCK_TRAILER_BYTES
                    || start(i) < blockEnd
                    || start(i) + bytes(i) > dataBytes
                    || separatorEnd < separatorStart) {
                return "the index names a block outside the data or inside another: block=" + i;
            }
            separatorStart = separatorEnd;
            blockEnd = start(i) + bytes(i);
        }
        return null;
    }

    int blocks() {
        return blocks;
    }

    /// Where the block starts in the file, bytes.
    long start(int block) {
        return (Memory.getInt(places + 8L * block) & 0xFFFF_FFFFL) * SSTableFormat.ALIGNMENT_BYTES;
    }

    /// Bytes of the block with its checksum.
    int bytes(int block) {
        return Memory.getInt(places + 8L * block + 4) & ~COMPRESSED_BIT;
    }

    boolean isCompressed(int block) {
        return (Memory.getInt(places + 8L * block + 4) & COMPRESSED_BIT) != 0;
    }

    /// The first key of the first block.
    byte[] firstSeparator() {
        return Memory.copyOf(separators, Memory.getInt(separatorStarts + 4L));
    }

    /// The last block that starts at or before `position` in the file.
    int blockAt(long position) {
        int low = 0;
        int high = blocks - 1;
        while (low < high) {
            int middle = (low + high + 1) >>> 1;
            if (start(middle) <= position) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        return low;
    }

    /// The block that holds `key` if the table does, or -1 when the key is before the first block.
    int find(byte[] key) {
        int prefixOrder = Keys.compareToPrefix(key, commonPrefix);
        if (prefixOrder != 0) {
            return prefixOrder < 0 ? -1 : blocks - 1;
        }
        long number = Keys.prefix(key, commonPrefix.length);
        int base = lastAtMost(number);
        if (base < 0 || number(base) != number) {
            return base;
        }
        return lastSeparatorAtMost(key, number, base);
    }

    private long number(int block) {
        return Memory.getLong(numbers + 8L * block);
    }

    /// The last block whose key number is at most `number`, or -1.
    private int lastAtMost(long number) {
        int fence = lastAtMost(fences, fenceCount, number);
        if (fence < 0) {
            return lastAtMost(numbers, Math.min(BEFORE_FENCES, blocks), number);
        }
        int first = BEFORE_FENCES + GROUP * fence;
        return first + lastAtMost(numbers + 8L * first, Math.min(GROUP, blocks - first), number);
    }

    /// The place of the last of `count` ascending numbers that is at most `number`, or -1.
    private static int lastAtMost(long ascending, int count, long number) {
        if (count == 0 || Long.compareUnsigned(Memory.getLong(ascending), number) > 0) {
            return -1;
        }
        int base = 0;
        int length = count;
        while (length > 1) {
            int half = length >>> 1;
            if (Long.compareUnsigned(Memory.getLong(ascending + 8L * (base + half)), number) <= 0) {
                base += half;
            }
            length -= half;
        }
        return base;
    }

    /// Among the blocks with this key number, of which `last` is the last, the last whose separator is at most
    /// `key`; or the one before them.
    private int lastSeparatorAtMost(byte[] key, long number, int last) {
        int low = number == 0 ? -1 : lastAtMost(number - 1); // below here: number smaller
        int high = last;
        while (low < high) {
            int middle = (low + high + 1) >> 1;
            if (compareSeparator(key, middle) >= 0) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        return low;
    }

    private int compareSeparator(byte[] key, int block) {
        int start = Memory.getInt(separatorStarts + 4L * block);
        int end = Memory.getInt(separatorStarts + 4L * (block + 1));
        return Keys.compare(key, separators + start, end - start);
    }
}
