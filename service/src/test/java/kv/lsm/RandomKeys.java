package kv.lsm;

import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;

/// Keys of one of several shapes that have caught stores out: text with a long common prefix, random bytes of
/// both signs, keys that are prefixes of other keys, long keys, few keys written again and again.
final class RandomKeys {
    private final SplittableRandom random;
    private final int shape;
    private final int space;

    RandomKeys(SplittableRandom random) {
        this.random = random;
        shape = random.nextInt(5);
        space = 1 << random.nextInt(3, 12);
    }

    byte[] next() {
        int number = random.nextInt(space);
        return switch (shape) {
            case 0 -> "user-with-a-long-common-prefix-%08d".formatted(number).getBytes(StandardCharsets.UTF_8);
            case 1 -> {
                byte[] key = new byte[1 + number % 7];
                new SplittableRandom(number).nextBytes(key);
                yield key;
            }
            case 2 -> "a".repeat(1 + number % 300).getBytes(StandardCharsets.UTF_8);
            case 3 -> {
                byte[] key = new byte[1 + number % 2000];
                new SplittableRandom(number % 3).nextBytes(key);
                key[key.length - 1] = (byte) number;
                yield key;
            }
            default -> new byte[] {(byte) (number >> 8), (byte) number};
        };
    }

    byte[] value() {
        int bytes = switch (random.nextInt(80)) {
            case 0, 1, 2, 3 -> 0;
            case 4 -> random.nextInt(1 << 15);
            default -> random.nextInt(200);
        };
        byte[] value = new byte[bytes];
        if (random.nextBoolean()) { // else zeros, which compress and look like unwritten bytes
            random.nextBytes(value);
        }
        return value;
    }
}
