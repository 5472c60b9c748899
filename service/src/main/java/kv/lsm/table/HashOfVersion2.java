package kv.lsm.table;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/// The hash of keys in tables of version 2, which are still read; [kv.lsm.memory.Keys] has that of all others.
final class HashOfVersion2 {
    private static final VarHandle ARRAY_LONG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final long HASH_SEED = 0x9E37_79B9_7F4A_7C15L;
    private static final long HASH_FACTOR = 0xD6E8_FEB8_6659_FD93L;

    private HashOfVersion2() {}

    static long of(byte[] key) {
        long hash = HASH_SEED ^ key.length;
        int i = 0;
        for (; i + 8 <= key.length; i += 8) {
            hash = mix(hash ^ (long) ARRAY_LONG.get(key, i));
        }
        if (i < key.length) {
            long tail = 0;
            for (int shift = 0; i < key.length; i++, shift += 8) {
                tail |= (key[i] & 0xFFL) << shift;
            }
            hash = mix(hash ^ tail);
        }
        return mix(hash);
    }

    private static long mix(long x) {
        return Math.unsignedMultiplyHigh(x, HASH_FACTOR) ^ (x * HASH_FACTOR);
    }
}
