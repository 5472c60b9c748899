package kv.lsm.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class PartChecksumsTest {
    private static final int BYTES = 3 * 4096 + 100;

    @Test
    void anyPartHasTheChecksumOfItsBytes() {
        SplittableRandom random = new SplittableRandom(1);
        byte[] content = new byte[BYTES];
        random.nextBytes(content);
        try (Arena arena = Arena.ofConfined()) {
            long log = arena.allocate(BYTES)
                    .copyFrom(MemorySegment.ofArray(content))
                    .address();
            PartChecksums parts = new PartChecksums(log, BYTES);
            for (int i = 0; i < 2_000; i++) {
                int from = i % 3 == 0 ? random.nextInt(3) * 4096 : random.nextInt(BYTES);
                int to = i % 5 == 0 ? BYTES : random.nextInt(from, BYTES + 1);
                assertThat(parts.of(from, to))
                        .as("from %d to %d", from, to)
                        .isEqualTo(Checksum.of(log + from, to - from));
            }
        }
    }
}
