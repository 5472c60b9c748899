package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Keys;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MemtableFilterTest {
    private static final int KEYS = 100_000;

    private final Allocator allocator = new Allocator();

    @AfterEach
    void freesAll() {
        assertThat(allocator.allocatedBytes()).isZero();
    }

    private static long hash(int i) {
        return Keys.hash(ByteBuffer.allocate(16).putInt(12, i).array());
    }

    @ParameterizedTest
    @CsvSource({"170, 0.025", "60, 0.35", "2000, 0.0001"})
    void neverDeniesAnAddedKeyAndRarelyAdmitsAnother(int memtableBytesPerKey, double falsePositivesMax) {
        MemtableFilter filter = new MemtableFilter(allocator, (long) memtableBytesPerKey * KEYS);
        for (int i = 0; i < KEYS; i++) {
            filter.add(hash(i));
        }
        int admitted = 0;
        for (int i = 0; i < KEYS; i++) {
            assertThat(filter.mayContain(hash(i))).as("key %d", i).isTrue();
            admitted += filter.mayContain(hash(KEYS + i)) ? 1 : 0;
        }
        assertThat((double) admitted / KEYS).isLessThan(falsePositivesMax);
        filter.free();
    }

    @Test
    void anEmptyFilterOfTheSmallestMemtableDeniesEverything() {
        MemtableFilter filter = new MemtableFilter(allocator, 1 << 10);
        for (int i = 0; i < 1_000; i++) {
            assertThat(filter.mayContain(hash(i))).isFalse();
        }
        filter.free();
    }

    /// Six keys share a word, one added long after another: an addition must not take back another one, not
    /// even for a moment.
    @Test
    void aThreadThatAsksWhileAnotherAddsIsNotDeniedWhatWasAddedBefore() throws Exception {
        MemtableFilter filter = new MemtableFilter(allocator, 170L * KEYS);
        int[] added = {0};
        CompletableFuture<Integer> denied = CompletableFuture.supplyAsync(() -> {
            int wrong = 0;
            int seen = 0;
            while (seen < KEYS) {
                synchronized (added) {
                    seen = added[0];
                }
                for (int i = Math.floorMod(31 * seen, 1_000); i < seen; i += 1_000) {
                    wrong += filter.mayContain(hash(i)) ? 0 : 1;
                }
            }
            return wrong;
        });
        for (int i = 0; i < KEYS; i++) {
            filter.add(hash(i));
            synchronized (added) {
                added[0] = i + 1;
            }
        }
        assertThat(denied.get(60, TimeUnit.SECONDS)).isZero();
        filter.free();
    }
}
