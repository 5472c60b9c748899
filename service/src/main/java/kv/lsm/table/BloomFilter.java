package kv.lsm.table;

import kv.lsm.TimeSlices;
import kv.lsm.memory.Memory;
import kv.lsm.memory.NativeBuffer;

/// Says of most absent keys that they are absent; a blocked bloom filter (Putze et al. 2007): all probes of a
/// key lie in one 64-byte line, so a check costs one cache miss. The price is about half as many false
/// positives again as a classic filter.
///
/// ```
/// lines 4 │ probes 4 │ zeros to 64 │ line 64 × lines
/// ```
///
/// Line of a key: the high half of the 128-bit product of hash and number of lines. Probe i sets the bit given
/// by the highest nine bits of `hash * SPREAD^(i + 1)`.
final class BloomFilter {
    static final int HEADER_BYTES = 64;
    static final int LINE_BYTES = 64;
    static final long SPREAD = 0x9E37_79B9_7F4A_7C15L;

    private static final int LINE_BITS = 8 * LINE_BYTES;
    private static final int PROBES_MAX = 16;
    private static final int BIT_SHIFT = 64 - 9;

    private final int lineCount;
    private final int probes;
    private final long lines;

    /// @param address of a filter part that [#problem] found nothing wrong with
    BloomFilter(long address) {
        lineCount = Memory.getInt(address);
        probes = Memory.getInt(address + 4);
        lines = address + HEADER_BYTES;
    }

    /// What is wrong with a filter part, or null.
    static String problem(long address, long bytes) {
        if (bytes < HEADER_BYTES
                || Memory.getInt(address) < 1
                || bytes != HEADER_BYTES + (long) LINE_BYTES * Memory.getInt(address)) {
            return "the filter does not fit its size: bytes=" + bytes;
        }
        return null;
    }

    boolean mayContain(long hash) {
        long line = line(lines, lineCount, hash);
        long h = hash;
        for (int i = 0; i < probes; i++) {
            h *= SPREAD;
            int bit = (int) (h >>> BIT_SHIFT);
            if ((Memory.getLong(line + ((bit >>> 6) << 3)) & 1L << bit) == 0) {
                return false;
            }
        }
        return true;
    }

    /// Of the line that [#mayContain] looks at.
    long lineAddress(long hash) {
        return line(lines, lineCount, hash);
    }

    private static long line(long lines, int lineCount, long hash) {
        return lines + Math.unsignedMultiplyHigh(hash, lineCount) * LINE_BYTES;
    }

    /// Appends the filter of `hashes` (8 bytes each) to `out`, whose size is a multiple of 8.
    ///
    /// @param slices of the thread that calls, a step for each hash
    static void write(NativeBuffer hashes, int bitsPerKey, NativeBuffer out, TimeSlices slices) {
        long count = hashes.size() / Long.BYTES;
        int lineCount = (int) Math.max(1, (count * bitsPerKey + LINE_BITS - 1) / LINE_BITS);
        int probes = Math.clamp(Math.round(bitsPerKey * Math.log(2)), 1, PROBES_MAX);
        long address = out.extend(HEADER_BYTES + (long) LINE_BYTES * lineCount);
        Memory.fill(address, HEADER_BYTES + (long) LINE_BYTES * lineCount, (byte) 0);
        Memory.putInt(address, lineCount);
        Memory.putInt(address + 4, probes);
        for (long i = 0; i < count; i++) {
            long hash = Memory.getLong(hashes.address() + i * Long.BYTES);
            long line = line(address + HEADER_BYTES, lineCount, hash);
            long h = hash;
            for (int p = 0; p < probes; p++) {
                h *= SPREAD;
                int bit = (int) (h >>> BIT_SHIFT);
                long word = line + ((bit >>> 6) << 3);
                Memory.putLong(word, Memory.getLong(word) | 1L << bit);
            }
            slices.step();
        }
    }
}
