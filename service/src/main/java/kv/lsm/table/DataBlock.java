package kv.lsm.table;

import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;

/// Reads the payload of a data block, and its entries, where they lie.
///
/// ```
/// count 2 │ offset 2 × count │ entries
/// entry: key length 2 │ value length 4, -1 for a tombstone │ key │ value
/// ```
///
/// Offsets count from the first entry. An entry can be read without its block: the hash index of a table leads
/// to it. Keys are not prefix-compressed: entries can be compared where they lie, at the price of some space
/// (LZ4 takes it back).
final class DataBlock {
    static final int COUNT_BYTES = 2;
    static final int OFFSET_BYTES = 2;
    static final int ENTRY_HEADER_BYTES = 6;
    /// An entry starts at an offset below this; it may end anywhere.
    static final int OFFSET_MAX = 0xFFFF;

    private static final int VALUE_LENGTH_AT = 2;

    private DataBlock() {}

    static int count(long block) {
        return Memory.getUnsignedShort(block);
    }

    private static long entries(long block, int count) {
        return block + COUNT_BYTES + (long) count * OFFSET_BYTES;
    }

    private static int offset(long block, int index) {
        return Memory.getUnsignedShort(block + COUNT_BYTES + (long) index * OFFSET_BYTES);
    }

    static long entry(long block, int count, int index) {
        return entries(block, count) + offset(block, index);
    }

    static int keyLength(long entry) {
        return Memory.getUnsignedShort(entry);
    }

    static long keyAddress(long entry) {
        return entry + ENTRY_HEADER_BYTES;
    }

    /// Bytes of the value, or [EntryIterator#TOMBSTONE].
    static int valueLength(long entry) {
        return Memory.getInt(entry + VALUE_LENGTH_AT);
    }

    static long valueAddress(long entry) {
        return keyAddress(entry) + keyLength(entry);
    }

    /// Behind the entry's last byte.
    static long entryEnd(long entry) {
        return valueAddress(entry) + Math.max(valueLength(entry), 0);
    }

    static boolean isOf(long entry, byte[] key) {
        return Keys.equal(key, keyAddress(entry), keyLength(entry));
    }

    /// The address of `key`'s entry, or 0.
    static long find(long block, byte[] key) {
        int count = count(block);
        int index = firstAtLeast(block, key);
        if (index == count) {
            return 0;
        }
        long entry = entry(block, count, index);
        return isOf(entry, key) ? entry : 0;
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

    /// What is wrong with a payload whose checksum matched, or null: guards the unchecked reads above against a
    /// file that was written by something else.
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
            long start = offset(block, i);
            long end = i + 1 < count ? offset(block, i + 1) : entriesBytes;
            long entry = entries(block, count) + start;
            if (start + ENTRY_HEADER_BYTES > end
                    || end > entriesBytes
                    || valueLength(entry) < EntryIterator.TOMBSTONE
                    || entryEnd(entry) != entries(block, count) + end) {
                return "a data block whose entries do not fit it: entry=" + i;
            }
        }
        return null;
    }
}
