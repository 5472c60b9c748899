package kv.lsm.memory;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import net.openhft.hashing.LongHashFunction;

/// Order and hash of keys, in arrays and in native memory. Bytes are unsigned: `7F` comes before `80`.
public final class Keys {
    private static final VarHandle ARRAY_LONG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle ARRAY_LONG_BIG_ENDIAN =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

    private static final LongHashFunction XXH3 = LongHashFunction.xx3();

    private Keys() {}

    public static int compare(byte[] a, long b, int bLength) {
        int common = Math.min(a.length, bLength);
        int i = 0;
        for (; i + 8 <= common; i += 8) {
            long x = (long) ARRAY_LONG_BIG_ENDIAN.get(a, i);
            long y = Memory.getLongBigEndian(b + i);
            if (x != y) {
                return Long.compareUnsigned(x, y);
            }
        }
        for (; i < common; i++) {
            int difference = (a[i] & 0xFF) - (Memory.getByte(b + i) & 0xFF);
            if (difference != 0) {
                return difference;
            }
        }
        return a.length - bLength;
    }

    public static int compare(long a, int aLength, long b, int bLength) {
        int common = Math.min(aLength, bLength);
        int i = 0;
        for (; i + 8 <= common; i += 8) {
            long x = Memory.getLongBigEndian(a + i);
            long y = Memory.getLongBigEndian(b + i);
            if (x != y) {
                return Long.compareUnsigned(x, y);
            }
        }
        for (; i < common; i++) {
            int difference = (Memory.getByte(a + i) & 0xFF) - (Memory.getByte(b + i) & 0xFF);
            if (difference != 0) {
                return difference;
            }
        }
        return aLength - bLength;
    }

    public static boolean equal(byte[] a, long b, int bLength) {
        if (a.length != bLength) {
            return false;
        }
        int i = 0;
        for (; i + 8 <= bLength; i += 8) {
            if ((long) ARRAY_LONG.get(a, i) != Memory.getLong(b + i)) {
                return false;
            }
        }
        for (; i < bLength; i++) {
            if (a[i] != Memory.getByte(b + i)) {
                return false;
            }
        }
        return true;
    }

    /// Negative or positive when `key` comes before or after all keys that begin with `prefix`, 0 when it is
    /// one of them.
    public static int compareToPrefix(byte[] key, byte[] prefix) {
        int different = Arrays.mismatch(prefix, 0, prefix.length, key, 0, Math.min(key.length, prefix.length));
        if (different < 0) {
            return 0;
        }
        return different == key.length ? -1 : (key[different] & 0xFF) - (prefix[different] & 0xFF);
    }

    /// Index of the first byte from `from` on in which the two differ, or the shorter one's length.
    public static int mismatch(long a, int aLength, long b, int bLength, int from) {
        int common = Math.min(aLength, bLength);
        int i = from;
        for (; i + 8 <= common; i += 8) {
            long difference = Memory.getLong(a + i) ^ Memory.getLong(b + i);
            if (difference != 0) {
                return i + (Long.numberOfTrailingZeros(difference) >>> 3);
            }
        }
        while (i < common && Memory.getByte(a + i) == Memory.getByte(b + i)) {
            i++;
        }
        return i;
    }

    /// The eight bytes from `from` on as a number that orders as the bytes do; zeros stand for bytes past the
    /// end.
    public static long prefix(byte[] key, int from) {
        if (from + 8 <= key.length) {
            return (long) ARRAY_LONG_BIG_ENDIAN.get(key, from);
        }
        long prefix = 0;
        for (int i = from; i < key.length; i++) {
            prefix |= (key[i] & 0xFFL) << (56 - 8 * (i - from));
        }
        return prefix;
    }

    /// As [#prefix(byte\[\], int)].
    public static long prefix(long key, int length, int from) {
        if (from + 8 <= length) {
            return Memory.getLongBigEndian(key + from);
        }
        long prefix = 0;
        for (int i = from; i < length; i++) {
            prefix |= (Memory.getByte(key + i) & 0xFFL) << (56 - 8 * (i - from));
        }
        return prefix;
    }

    /// The hash that bloom filters and hash indexes are made of, XXH3 of 64 bits without a seed; part of the
    /// table format (`service/docs/sstable-format.md`).
    public static long hash(byte[] key) {
        return XXH3.hashBytes(key);
    }

    /// As [#hash(byte\[\])].
    public static long hash(long key, int length) {
        return XXH3.hashMemory(key, length);
    }
}
