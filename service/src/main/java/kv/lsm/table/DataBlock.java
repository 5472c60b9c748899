package kv.lsm.table;

import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;

/// Reads the payload of a data block where it lies.
///
/// ```
/// count 2 │ tag 1 × count │ offset 2 × count │ entries
/// entry: key length 15 bits, tombstone bit (the highest) │ key │ value
/// ```
///
/// A tag is the lowest byte of the key's hash; offsets count from the first entry; a value ends where the next entry or the
/// payload ends. Tags and offsets stand together at the front, so a point read touches them and then, as a rule, one entry.
/// Keys are not prefix-compressed: entries can be compared where they lie, at the price of some space (LZ4 takes it back).
final class DataBlock {
    static final int COUNT_BYTES = 2;
    static final int TAG_BYTES = 1;
    static final int OFFSET_BYTES = 2;
    static final int ENTRY_HEADER_BYTES = 2;
    static final int TOMBSTONE_BIT = 0x8000;
    /// An entry starts at an offset below this; it may end anywhere.
    static final int OFFSET_MAX = 0xFFFF;

    private static final long ONES = 0x0101_0101_0101_0101L;
    private static final long HIGHS = 0x8080_8080_8080_8080L;

    private DataBlock() {}

    static int count(long block) {
        return Memory.getUnsignedShort(block);
    }

    private static long entries(long block, int count) {
        return block + COUNT_BYTES + (long) count * (TAG_BYTES + OFFSET_BYTES);
    }

    private static int offset(long block, int count, int index) {
        return Memory.getUnsignedShort(block + COUNT_BYTES + (long) count * TAG_BYTES + (long) index * OFFSET_BYTES);
    }

    static long entry(long block, int count, int index) {
        return entries(block, count) + offset(block, count, index);
    }

    /// The address behind entry `index`.
    static long entryEnd(long block, int payloadBytes, int count, int index) {
        return index + 1 < count ? entry(block, count, index + 1) : block + payloadBytes;
    }

    static int keyLength(long entry) {
        return Memory.getUnsignedShort(entry) & ~TOMBSTONE_BIT;
    }

    static boolean isTombstone(long entry) {
        return (Memory.getUnsignedShort(entry) & TOMBSTONE_BIT) != 0;
    }

    static long keyAddress(long entry) {
        return entry + ENTRY_HEADER_BYTES;
    }

    /// Bytes of the value, or [EntryIterator#TOMBSTONE].
    static int valueLength(long entry, long entryEnd) {
        return isTombstone(entry)
                ? EntryIterator.TOMBSTONE
                : (int) (entryEnd - entry - ENTRY_HEADER_BYTES - keyLength(entry));
    }

    /// The index of `key`'s entry, or -1.
    static int find(long block, byte[] key, long hash) {
        int count = count(block);
        long tags = block + COUNT_BYTES;
        long wanted = (hash & 0xFF) * ONES;
        for (int i = 0; i < count; i += 8) {
            // may reach beyond the tags, not beyond the block: each tag is followed by more than eight bytes of offsets, entries
            // and trailer
            long zeroWhereEqual = Memory.getLong(tags + i) ^ wanted;
            long matches = (zeroWhereEqual - ONES) & ~zeroWhereEqual & HIGHS;
            while (matches != 0) {
                int index = i + (Long.numberOfTrailingZeros(matches) >>> 3);
                if (index < count) {
                    long entry = entry(block, count, index);
                    if (Keys.equal(key, keyAddress(entry), keyLength(entry))) {
                        return index;
                    }
                }
                matches &= matches - 1;
            }
        }
        return -1;
    }

    /// The index of the first entry whose key is at least `key`, or the count.
    static int firstAtLeast(long block, byte[] key) {
        int count = count(block);
        int low = 0;
        int high = count;
        while (low < high) {
            int middle = (low + high) >>> 1;
            long entry = entry(block, count, middle);
            if (Keys.compare(key, keyAddress(entry), keyLength(entry)) > 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    /// What is wrong with a payload whose checksum matched, or null: guards the unchecked reads above against a file that was
    /// written by something else.
    static String problem(long block, long payloadBytes) {
        if (payloadBytes < COUNT_BYTES) {
            return "a data block without a count";
        }
        int count = count(block);
        long entriesBytes = block + payloadBytes - entries(block, count);
        if (count == 0 || entriesBytes < 0) {
            return "a data block whose count does not fit it: count=" + count;
        }
        for (int i = 0; i < count; i++) {
            long start = offset(block, count, i);
            long end = i + 1 < count ? offset(block, count, i + 1) : entriesBytes;
            if (start + ENTRY_HEADER_BYTES > end
                    || end > entriesBytes
                    || start + ENTRY_HEADER_BYTES + keyLength(entries(block, count) + start) > end) {
                return "a data block whose entries do not fit it: entry=" + i;
            }
        }
        return null;
    }
}
