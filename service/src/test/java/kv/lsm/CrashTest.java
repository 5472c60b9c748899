package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/// Killed processes and lost power under random options.
class CrashTest {
    private static final int CYCLES = 12;

    @TestFactory
    Stream<DynamicTest> aCrashTakesNothingThatWasPromisedAndLeavesAFirstPartOfTheHistory() {
        return Seeds.tests(20, seed -> new CrashHistory(seed, false).play(CYCLES, null));
    }

    /// The check is checked: with a disk whose syncs do nothing, it has to find writes that are gone.
    @Test
    void theCheckFindsLostWritesWhenSyncsDoNothing() {
        long found = IntStream.range(0, 10).filter(CrashTest::losesWrites).count();
        assertThat(found).isGreaterThan(5);
    }

    private static boolean losesWrites(int seed) {
        try {
            new CrashHistory(seed, true).play(CYCLES, WalMode.ALWAYS);
            return false;
        } catch (AssertionError | StoreException e) { // writes are gone, or files that the manifest names are
            return true;
        }
    }
}
