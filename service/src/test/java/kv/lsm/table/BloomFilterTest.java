package kv.lsm.table;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import kv.lsm.TimeSlices;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.NativeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class BloomFilterTest {
    private static final int KEYS = 100_000;

    private final Allocator allocator = new Allocator();

    private static long hash(int i) {
        return Keys.hash(ByteBuffer.allocate(4).putInt(i).array());
    }

    private BloomFilter filter(int keys, int bitsPerKey) {
        NativeBuffer hashes = new NativeBuffer(allocator, 64);
        for (int i = 0; i < keys; i++) {
            hashes.appendLong(hash(i));
        }
        NativeBuffer out = new NativeBuffer(allocator, 64);
        BloomFilter.write(hashes, bitsPerKey, out, TimeSlices.endless());
        assertThat(BloomFilter.problem(out.address(), out.size())).isNull();
        return new BloomFilter(out.address());
    }

    @ParameterizedTest
    @CsvSource({"1, 0.75", "5, 0.15", "10, 0.015", "16, 0.003", "32, 0.0005"})
    void neverDeniesAPresentKeyAndRarelyAdmitsAnAbsentOne(int bitsPerKey, double falsePositivesMax) {
        BloomFilter filter = filter(KEYS, bitsPerKey);
        int admitted = 0;
        for (int i = 0; i < KEYS; i++) {
            assertThat(filter.mayContain(hash(i))).as("key %d", i).isTrue();
            admitted += filter.mayContain(hash(KEYS + i)) ? 1 : 0;
        }
        assertThat((double) admitted / KEYS).isLessThan(falsePositivesMax);
    }

    @Test
    void oneKeyTakesOneLine() {
        BloomFilter filter = filter(1, 10);
        assertThat(filter.mayContain(hash(0))).isTrue();
        assertThat(filter.mayContain(hash(1))).isFalse();
    }
}
