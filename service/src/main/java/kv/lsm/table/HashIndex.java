package kv.lsm.table;

import kv.lsm.TimeSlices;
import kv.lsm.memory.Memory;
import kv.lsm.memory.NativeBuffer;

/// Leads from a key's hash to the places where its entry may lie in a table, so that a point read of a mapped
/// table waits for memory twice: for a line of this index and for the entry.
///
/// ```
/// lines 4 │ position bits 4 │ zeros to 64 │ line 64 × lines
/// line: tag 1 × 12 │ used 1 │ passed 1 │ zeros 2 │ slot 4 × 12
/// ```
///
/// 1. The line of a key is the high half of the 128-bit product of hash and number of lines; when it is full
///    the key goes to the next line with room, the first line behind the last. Each line on the way sets one of
///    the eight bits of `passed`, which the hash names: a search goes on only where its bit is set. Four fifths
///    of all slots are used.
/// 2. A tag is the lowest byte of the hash. The low `position bits` of a slot are where the entry starts in the
///    file; the bits above, where there are any, are those of the hash above the tag. In a table of 64 MiB one
///    absent key of about 1 200 meets an entry.
final class HashIndex {
    static final int HEADER_BYTES = 64;
    static final int LINE_BYTES = 64;
    static final int SLOTS = 12;

    private static final int USED_AT = SLOTS;
    private static final int PASSED_AT = SLOTS + 1;
    private static final int SLOTS_AT = 16;
    private static final int TAG_BITS = 8;
    /// Three bits of the hash that neither tag nor slot holds.
    private static final int PASSED_SHIFT = 40;
    private static final int POSITION_BITS_MAX = Integer.SIZE;
    private static final long ONES = 0x0101_0101_0101_0101L;
    private static final long HIGHS = 0x8080_8080_8080_8080L;
    /// Of the tags that lie in the second half of a line's first 16 bytes.
    private static final long HIGHS_OF_LAST_TAGS = 0x8080_8080L;

    /// Looks whether an entry is the wanted one.
    interface Candidates {
        /// The address of the entry at `position` in the file if it is that of `key`, else 0.
        long entryOf(byte[] key, long position);
    }

    private final int lineCount;
    private final int positionBits;
    private final long positionMask;
    private final long lines;

    /// @param address of a part that [#problem] found nothing wrong with
    HashIndex(long address) {
        lineCount = Memory.getInt(address);
        positionBits = Memory.getInt(address + 4);
        positionMask = (1L << positionBits) - 1;
        lines = address + HEADER_BYTES;
    }

    /// What is wrong with a hash index, or null.
    static String problem(long address, long bytes) {
        if (bytes < HEADER_BYTES
                || Memory.getInt(address) < 1
                || Memory.getInt(address + 4) < 1
                || Memory.getInt(address + 4) > POSITION_BITS_MAX
                || bytes != HEADER_BYTES + (long) LINE_BYTES * Memory.getInt(address)) {
            return "the hash index does not fit its size: bytes=" + bytes;
        }
        return null;
    }

    /// Bytes that the index of so many entries takes.
    static long bytes(long entries) {
        return HEADER_BYTES + (long) LINE_BYTES * lineCount(entries);
    }

    private static int lineCount(long entries) {
        return (int) Math.max(1, (entries * 5 + 4L * SLOTS - 1) / (4L * SLOTS));
    }

    /// True when entries that all start before `dataBytes` can be told.
    static boolean reaches(long dataBytes) {
        return dataBytes <= 1L << POSITION_BITS_MAX;
    }

    /// The address of `key`'s entry, or 0.
    long find(byte[] key, long hash, Candidates candidates) {
        int line = lineOf(hash, lineCount);
        long wanted = (hash & 0xFF) * ONES;
        long check = checkOf(hash, positionBits);
        for (int seen = 0; seen < lineCount; seen++) {
            long address = lines + (long) LINE_BYTES * line;
            long firstTags = Memory.getLong(address);
            long lastTags = Memory.getLong(address + Long.BYTES);
            long found = entryAmong(key, address + SLOTS_AT, zeroBytes(firstTags ^ wanted) & HIGHS, check, candidates);
            if (found == 0) {
                long matches = zeroBytes(lastTags ^ wanted) & HIGHS_OF_LAST_TAGS;
                found = entryAmong(key, address + SLOTS_AT + 4 * Long.BYTES, matches, check, candidates);
            }
            if (found != 0 || (Memory.getByte(address + PASSED_AT) & passedBit(hash)) == 0) {
                return found;
            }
            line = next(line, lineCount);
        }
        return 0;
    }

    /// Of the line that [#find] looks at first.
    long lineAddress(long hash) {
        return lines + (long) LINE_BYTES * lineOf(hash, lineCount);
    }

    /// Of the line that a search may go on to from the one at `lineAddress`, which is read; 0 when it ends there.
    long lineAddressAfter(long lineAddress, long hash) {
        if ((Memory.getByte(lineAddress + PASSED_AT) & passedBit(hash)) == 0) {
            return 0;
        }
        int line = (int) ((lineAddress - lines) / LINE_BYTES);
        long after = lines + (long) LINE_BYTES * next(line, lineCount);
        return after == lineAddress(hash) ? 0 : after; // it has seen them all
    }

    /// The highest bit of each byte that is zero; also of some others above one, which costs a look at a slot.
    private static long zeroBytes(long x) {
        return (x - ONES) & ~x;
    }

    /// @param slots address of the slot that belongs to the lowest tag
    /// @param matches the highest bit of each tag that is the wanted one
    private long entryAmong(byte[] key, long slots, long matches, long check, Candidates candidates) {
        for (long rest = matches; rest != 0; rest &= rest - 1) {
            long slot = Memory.getInt(slots + 4L * (Long.numberOfTrailingZeros(rest) >>> 3)) & 0xFFFF_FFFFL;
            if (slot != 0 && slot >>> positionBits == check) {
                long entry = candidates.entryOf(key, slot & positionMask);
                if (entry != 0) {
                    return entry;
                }
            }
        }
        return 0;
    }

    private static int lineOf(long hash, int lineCount) {
        return (int) Math.unsignedMultiplyHigh(hash, lineCount);
    }

    private static long checkOf(long hash, int positionBits) {
        return hash >>> TAG_BITS & (1L << POSITION_BITS_MAX - positionBits) - 1;
    }

    private static int passedBit(long hash) {
        return 1 << (hash >>> PASSED_SHIFT & 7);
    }

    private static int next(int line, int lineCount) {
        return line + 1 == lineCount ? 0 : line + 1;
    }

    /// Appends the index of entries to `out`, whose size is a multiple of 64.
    ///
    /// @param hashes of the keys, 8 bytes each
    /// @param positions where their entries start, 4 bytes each, never 0
    /// @param dataBytes all positions are smaller
    /// @param slices of the thread that calls, a step for each entry
    static void write(
            NativeBuffer hashes, NativeBuffer positions, long dataBytes, NativeBuffer out, TimeSlices slices) {
        long entries = hashes.size() / Long.BYTES;
        int lineCount = lineCount(entries);
        int positionBits = Long.SIZE - Long.numberOfLeadingZeros(dataBytes - 1);
        long address = out.extend(bytes(entries));
        Memory.fill(address, bytes(entries), (byte) 0);
        Memory.putInt(address, lineCount);
        Memory.putInt(address + 4, positionBits);
        for (long i = 0; i < entries; i++) {
            long hash = Memory.getLong(hashes.address() + i * Long.BYTES);
            long position = Memory.getInt(positions.address() + i * Integer.BYTES) & 0xFFFF_FFFFL;
            long line = lineWithRoom(address + HEADER_BYTES, lineCount, hash);
            int used = Memory.getByte(line + USED_AT);
            Memory.putByte(line + used, (byte) hash);
            Memory.putInt(line + SLOTS_AT + 4L * used, (int) (checkOf(hash, positionBits) << positionBits | position));
            Memory.putByte(line + USED_AT, (byte) (used + 1));
            slices.step();
        }
    }

    /// The address of the first line from the hash's own on that is not full; sets the hash's bit in those
    /// before it.
    private static long lineWithRoom(long lines, int lineCount, long hash) {
        int candidate = lineOf(hash, lineCount);
        while (true) {
            long address = lines + (long) LINE_BYTES * candidate;
            if (Memory.getByte(address + USED_AT) < SLOTS) {
                return address;
            }
            Memory.putByte(address + PASSED_AT, (byte) (Memory.getByte(address + PASSED_AT) | passedBit(hash)));
            candidate = next(candidate, lineCount);
        }
    }
}
