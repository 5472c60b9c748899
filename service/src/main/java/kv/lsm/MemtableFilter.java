package kv.lsm;

import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;

/// Says of most keys without a record in a memtable that there is none, at the price of one look into memory
/// where the index takes a cache miss for each node on the way down: a bloom filter whose four bits of a key
/// lie in one word.
///
/// One thread at a time adds; any number ask meanwhile. A key is added before its record can be found, so who
/// is told "no" has asked before the record was there.
final class MemtableFilter {
    /// Of a memtable with records of 16 + 100 bytes, which with their index take some 170: about ten bits for
    /// each.
    private static final int MEMTABLE_BYTES_PER_FILTER_BYTE = 128;
    private static final long WORDS_MAX = 1 << 28;

    private final Allocator allocator;
    private final long words;
    private final int wordCount;

    /// @param memtableBytes of records and index that the memtable is to hold
    MemtableFilter(Allocator allocator, long memtableBytes) {
        this.allocator = allocator;
        wordCount = (int) Math.clamp(memtableBytes / MEMTABLE_BYTES_PER_FILTER_BYTE / Long.BYTES, 1, WORDS_MAX);
        words = allocator.allocate(bytes());
    }

    long bytes() {
        return (long) Long.BYTES * wordCount;
    }

    /// @param hash of the key, see [Keys#hash(byte\[\])]
    void add(long hash) {
        long word = word(hash);
        Memory.putLongRelease(word, Memory.getLong(word) | bits(hash));
    }

    boolean mayContain(long hash) {
        long bits = bits(hash);
        return (Memory.getLongAcquire(word(hash)) & bits) == bits;
    }

    /// Loads what [#mayContain] looks at.
    long prefetch(long hash) {
        return Memory.getLong(word(hash));
    }

    private long word(long hash) {
        return words + Math.unsignedMultiplyHigh(hash, wordCount) * Long.BYTES;
    }

    /// Shifts take the lowest six bits of their distance; the word is chosen by the highest bits.
    private static long bits(long hash) {
        return 1L << hash | 1L << (hash >>> 6) | 1L << (hash >>> 12) | 1L << (hash >>> 18);
    }

    void free() {
        allocator.free(words, bytes());
    }
}
