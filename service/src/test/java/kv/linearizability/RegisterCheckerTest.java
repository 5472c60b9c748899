package kv.linearizability;

import static kv.linearizability.Operation.NEVER;
import static kv.linearizability.Operation.read;
import static kv.linearizability.Operation.write;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// The checker is checked: known good and bad histories, and every fault planted in a good one is found.
class RegisterCheckerTest {
    private static boolean ok(Operation... history) {
        return RegisterChecker.isLinearizable(List.of(history));
    }

    @Test
    void readsSeeTheLastWrite() {
        assertThat(ok(read(null, 0, 1), write("a", 2, 3), read("a", 4, 5), write(null, 6, 7), read(null, 8, 9)))
                .isTrue();
    }

    @Test
    void aReadAfterAWriteMustNotSeeTheValueBefore() {
        assertThat(ok(write("a", 0, 1), write("b", 2, 3), read("a", 4, 5))).isFalse();
        assertThat(ok(write("a", 0, 1), read(null, 2, 3))).isFalse();
    }

    @Test
    void aReadDuringAWriteMaySeeEither() {
        assertThat(ok(write("a", 0, 1), write("b", 2, 9), read("a", 3, 4), read("b", 5, 6)))
                .isTrue();
        assertThat(ok(write("a", 0, 1), write("b", 2, 9), read("b", 3, 4), read("a", 5, 6)))
                .isFalse();
    }

    @Test
    void concurrentWritesMayTakeAnyOneOrder() {
        assertThat(ok(write("a", 0, 9), write("b", 0, 9), read("b", 10, 11), read("b", 12, 13)))
                .isTrue();
        assertThat(ok(write("a", 0, 9), write("b", 0, 9), read("b", 10, 11), read("a", 12, 13)))
                .isFalse();
    }

    @Test
    void aWriteWithoutAnAnswerMayHappenLateOrNever() {
        assertThat(ok(write("a", 0, 1), write("b", 2, NEVER), read("a", 3, 4), read("a", 5, 6)))
                .isTrue();
        assertThat(ok(write("a", 0, 1), write("b", 2, NEVER), read("a", 3, 4), read("b", 5, 6)))
                .isTrue();
        assertThat(ok(write("a", 0, 1), write("b", 2, NEVER), read("b", 3, 4), read("a", 5, 6)))
                .isFalse();
    }

    @Test
    void aValueThatNobodyWroteIsAFault() {
        assertThat(ok(write("a", 0, 1), read("x", 2, 3))).isFalse();
    }

    @Test
    void historiesOfARealRegisterPassAndOneStaleReadInThemIsFound() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        for (int round = 0; round < 300; round++) {
            List<Operation> history = new ArrayList<>();
            String value = null;
            int overlap = 1 + random.nextInt(6);
            for (int i = 1; i <= 80; i++) {
                // takes effect at 10 i, begins and ends up to `overlap` operations earlier and later
                long call = 10L * i - random.nextInt(10 * overlap);
                long end = 10L * i + random.nextInt(10 * overlap);
                if (random.nextInt(3) == 0) {
                    value = random.nextInt(6) == 0 ? null : "v" + i;
                    history.add(write(value, call, random.nextInt(10) == 0 ? NEVER : end));
                } else {
                    history.add(read(value, call, end));
                }
            }
            assertThat(RegisterChecker.isLinearizable(history))
                    .as("seed " + seed + ", round " + round)
                    .isTrue();
            history.add(write("x", 2_000, 2_001));
            history.add(write("y", 2_002, 2_003));
            history.add(read("x", 2_004, 2_005));
            assertThat(RegisterChecker.isLinearizable(history))
                    .as("seed " + seed + ", round " + round)
                    .isFalse();
        }
    }
}
