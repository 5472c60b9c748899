package kv.lsm.table;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.SplittableRandom;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;
import kv.lsm.memory.NativeBuffer;
import org.junit.jupiter.api.Test;

class CompressedPayloadTest {
    private static final int BEHIND_BYTES = 300;
    private static final long SEED = 20261130;

    private final Allocator allocator = new Allocator();

    /// Of all kinds of runs: some are longer than one byte of a length tells.
    private static byte[] plain(SplittableRandom random) {
        byte[] plain = new byte[random.nextInt(64, 20_000)];
        for (int at = 0; at < plain.length; ) {
            int end = Math.min(plain.length, at + (1 << random.nextInt(12)));
            if (random.nextBoolean()) {
                Arrays.fill(plain, at, end, (byte) random.nextInt(4));
            } else {
                for (int i = at; i < end; i++) {
                    plain[i] = (byte) random.nextInt();
                }
            }
            at = end;
        }
        return plain;
    }

    @Test
    void theEndOfWhatWasCompressedIsFoundWhateverStandsBehind() {
        SplittableRandom random = new SplittableRandom(SEED);
        int compressed = 0;
        try (NativeBuffer out = new NativeBuffer(allocator, 64);
                NativeBuffer scratch = new NativeBuffer(allocator, 64)) {
            for (int round = 0; round < 2_000; round++) {
                byte[] plain = plain(random);
                out.clear();
                Memory.copy(plain, out.extend(plain.length));
                if (!BlockCompressor.compress(out, plain.length, scratch)) {
                    continue;
                }
                compressed++;
                long bytes = out.size();
                byte[] behind = new byte[BEHIND_BYTES];
                random.nextBytes(behind);
                Memory.copy(behind, out.extend(behind.length));
                String what = "seed=" + SEED + ", round=" + round;
                assertThat(CompressedPayload.bytes(out.address(), bytes))
                        .as(what)
                        .isEqualTo(bytes);
                assertThat(CompressedPayload.bytes(out.address(), bytes + BEHIND_BYTES))
                        .as(what)
                        .isEqualTo(bytes);
                assertThat(CompressedPayload.bytes(out.address(), random.nextLong(bytes)))
                        .as(what)
                        .isEqualTo(-1);
            }
        }
        assertThat(compressed).isGreaterThan(500);
        assertThat(allocator.allocatedBytes()).isZero();
    }
}
