package kv.lsm.bench;

import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;

/// Keys of 16 digits and values of 100 random bytes.
final class Keyspace {
    static final int KEY_BYTES = 16;
    static final int VALUE_BYTES = 100;

    private final int size;
    private final byte[] noise;

    /// @param size number of keys that exist
    Keyspace(int size) {
        this.size = size;
        noise = new byte[1 << 20];
        new SplittableRandom(1).nextBytes(noise);
    }

    int size() {
        return size;
    }

    /// Key number `i`; those from [#size] on are never written.
    static byte[] key(long i) {
        byte[] key = "0000000000000000".getBytes(StandardCharsets.US_ASCII);
        for (int at = KEY_BYTES - 1; i > 0; at--, i /= 10) {
            key[at] += (byte) (i % 10);
        }
        return key;
    }

    /// An absent key between two present ones.
    static byte[] absentKey(long i) {
        byte[] key = key(i);
        key[KEY_BYTES - 1] += 'a' - '0';
        return key;
    }

    byte[] value(int i) {
        byte[] value = new byte[VALUE_BYTES];
        System.arraycopy(noise, (int) ((i * 131L) % (noise.length - VALUE_BYTES)), value, 0, VALUE_BYTES);
        return value;
    }

    /// A shuffled order of all keys, the same for every contender of a round.
    int[] order(long seed) {
        int[] order = new int[size];
        SplittableRandom random = new SplittableRandom(seed);
        for (int i = 0; i < size; i++) {
            int j = random.nextInt(i + 1);
            order[i] = order[j];
            order[j] = i;
        }
        return order;
    }
}
