package kv.lsm.memory;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/// Reads and writes native memory by address: mapped files, write-ahead logs and memtable indexes.
///
/// All accesses go through one segment that covers the whole address space. A segment per file would check
/// bounds and liveness each time, and a call site that meets heap, native and mapped segments is compiled to
/// slow code. The price: nothing here is checked. Whoever hands out an address keeps the memory alive (see
/// [kv.lsm.Views]), and lengths that come from a file are believed only after its checksum matched.
///
/// Numbers are little-endian unless the name says otherwise, and may lie at any address; the `acquire` and
/// `release` accesses need 8-byte (or 2-byte) alignment.
public final class Memory {
    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private static final ValueLayout.OfByte BYTE = ValueLayout.JAVA_BYTE;
    private static final ValueLayout.OfShort SHORT =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong LONG_BIG_ENDIAN =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);

    private static final VarHandle ORDERED_LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final VarHandle ORDERED_SHORT = ValueLayout.JAVA_SHORT.varHandle();
    private static final VarHandle ORDERED_BYTE = ValueLayout.JAVA_BYTE.varHandle();

    private Memory() {}

    public static byte getByte(long address) {
        return ALL.get(BYTE, address);
    }

    public static void putByte(long address, byte value) {
        ALL.set(BYTE, address, value);
    }

    public static int getUnsignedShort(long address) {
        return ALL.get(SHORT, address) & 0xFFFF;
    }

    public static void putShort(long address, int value) {
        ALL.set(SHORT, address, (short) value);
    }

    public static int getInt(long address) {
        return ALL.get(INT, address);
    }

    public static void putInt(long address, int value) {
        ALL.set(INT, address, value);
    }

    public static long getLong(long address) {
        return ALL.get(LONG, address);
    }

    public static void putLong(long address, long value) {
        ALL.set(LONG, address, value);
    }

    public static long getLongBigEndian(long address) {
        return ALL.get(LONG_BIG_ENDIAN, address);
    }

    public static long getLongAcquire(long address) {
        return (long) ORDERED_LONG.getAcquire(ALL, address);
    }

    public static void putLongRelease(long address, long value) {
        ORDERED_LONG.setRelease(ALL, address, value);
    }

    /// Sets the bits of `bits` at once.
    public static void orLong(long address, long bits) {
        long ignored = (long) ORDERED_LONG.getAndBitwiseOr(ALL, address, bits);
    }

    public static int getUnsignedShortAcquire(long address) {
        return (short) ORDERED_SHORT.getAcquire(ALL, address) & 0xFFFF;
    }

    public static void putShortRelease(long address, int value) {
        ORDERED_SHORT.setRelease(ALL, address, (short) value);
    }

    public static int getUnsignedByteAcquire(long address) {
        return (byte) ORDERED_BYTE.getAcquire(ALL, address) & 0xFF;
    }

    public static void putByteRelease(long address, int value) {
        ORDERED_BYTE.setRelease(ALL, address, (byte) value);
    }

    public static void copy(long from, long to, long bytes) {
        MemorySegment.copy(ALL, from, ALL, to, bytes);
    }

    public static void copy(byte[] from, long to) {
        MemorySegment.copy(from, 0, ALL, BYTE, to, from.length);
    }

    public static void copy(long from, byte[] to, int toIndex, int bytes) {
        MemorySegment.copy(ALL, BYTE, from, to, toIndex, bytes);
    }

    public static byte[] copyOf(long address, int bytes) {
        byte[] array = new byte[bytes];
        MemorySegment.copy(ALL, BYTE, address, array, 0, bytes);
        return array;
    }

    /// As the other; in `roomOrNull` if that has just this length.
    public static byte[] copyOf(long address, int bytes, byte[] roomOrNull) {
        if (roomOrNull == null || roomOrNull.length != bytes) {
            return copyOf(address, bytes);
        }
        MemorySegment.copy(ALL, BYTE, address, roomOrNull, 0, bytes);
        return roomOrNull;
    }

    public static void fill(long address, long bytes, byte value) {
        ALL.asSlice(address, bytes).fill(value);
    }

    /// A little-endian view; valid only as long as the memory is.
    public static ByteBuffer buffer(long address, long bytes) {
        return ALL.asSlice(address, bytes).asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }
}
