package kv.lsm.table;

import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Mapped;
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

    /// Believes what is there.
    static int count(long block) {
        return Memory.getUnsignedShort(block);
    }

    /// As the other, of a block that ends at `end` and may be mapped; so are `end` and the error of the methods
    /// below.
    ///
    /// @throws InternalError where its page could not be read, see [Mapped]
    static int count(long block, long end) {
        int count = count(block);
        Mapped.requireWithin(entries(block, count), block, end);
        return count;
    }

    private static long entries(long block, int count) {
        return block + COUNT_BYTES + (long) count * OFFSET_BYTES;
    }

    private static int offset(long block, int index) {
        return Memory.getUnsignedShort(block + COUNT_BYTES + (long) index * OFFSET_BYTES);
    }

    /// Believes what is there.
    static long entry(long block, int count, int index) {
        return entries(block, count) + offset(block, index);
    }

    static long entry(long block, long end, int count, int index) {
        long entry = entry(block, count, index);
        Mapped.requireWithin(entry + ENTRY_HEADER_BYTES, block, end);
        return entry;
    }

    /// Believes what is there.
    static int keyLength(long entry) {
        return Memory.getUnsignedShort(entry);
    }

    static int keyLength(long entry, long end) {
        int length = keyLength(entry);
        Mapped.requireWithin(keyAddress(entry) + length, entry, end);
        return length;
    }

    static long keyAddress(long entry) {
        return entry + ENTRY_HEADER_BYTES;
    }

    /// Bytes of the value, or [EntryIterator#TOMBSTONE]. Believes what is there.
    static int valueLength(long entry) {
        return Memory.getInt(entry + VALUE_LENGTH_AT);
    }

    /// @param keyLength of the entry
    static int valueLength(long entry, int keyLength, long end) {
        int length = valueLength(entry);
        if (length < EntryIterator.TOMBSTONE) {
            throw Mapped.unreadable();
        }
        Mapped.requireWithin(valueAddress(entry, keyLength) + Math.max(length, 0), entry, end);
        return length;
    }

    /// @param keyLength of the entry
    static long valueAddress(long entry, int keyLength) {
        return keyAddress(entry) + keyLength;
    }

    /// Behind the entry's last byte. Believes what is there.
    static long entryEnd(long entry) {
        return valueAddress(entry, keyLength(entry)) + Math.max(valueLength(entry), 0);
    }

    /// @param entry with as many bytes behind its header as the key has
    static boolean isOf(long entry, byte[] key) {
        return Keys.equal(key, keyAddress(entry), keyLength(entry));
    }

    /// The address of `key`'s entry, or 0.
    static long find(long block, long end, byte[] key) {
        int count = count(block, end);
        int index = firstAtLeast(block, end, count, key);
        if (index == count) {
            return 0;
        }
        long entry = entry(block, end, count, index);
        return Keys.equal(key, keyAddress(entry), keyLength(entry, end)) ? entry : 0;
    }

    /// The index of the first entry whose key is at least `key`, or the count.
    static int firstAtLeast(long block, long end, int count, byte[] key) {
        int low = 0;
        int high = count;
        while (low < high) {
            int middle = (low + high) >>> 1;
            long entry = entry(block, end, count, middle);
            if (Keys.compare(key, keyAddress(entry), keyLength(entry, end)) > 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    /// What is wrong with a payload whose checksum matched, or null: guards what believes it against a file that
    /// was written by something else.
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
            if (Long.compareUnsigned(start + ENTRY_HEADER_BYTES, end) > 0 // also where a page could not be read
                    || Long.compareUnsigned(end, entriesBytes) > 0
                    || valueLength(entry) < EntryIterator.TOMBSTONE
                    || entryEnd(entry) != entries(block, count) + end) {
                return "a data block whose entries do not fit it: entry=" + i;
            }
        }
        return null;
    }
}
