package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class GetCountersTest {
    @Test
    void countsWhatFewAndManyTablesTookAlike() {
        long seed = System.nanoTime();
        System.out.println("gets: seed=" + seed);
        SplittableRandom random = new SplittableRandom(seed);
        GetCounters counters = new GetCounters();
        long[] expected = new long[3];
        for (int get = 1; get <= 10_000; get++) {
            int bound = random.nextBoolean() ? 4 : 40;
            int checks = random.nextInt(bound);
            int negatives = random.nextInt(checks + 1);
            int reads = random.nextInt(bound);
            counters.count(checks, negatives, reads);
            expected[0] += checks;
            expected[1] += negatives;
            expected[2] += reads;
            assertThat(counters.gets()).isEqualTo(get);
        }
        assertThat(new long[] {counters.checks(), counters.negatives(), counters.reads()})
                .isEqualTo(expected);
    }
}
