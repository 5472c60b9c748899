package kv.lsm.table;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import kv.lsm.disk.ReadFile;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;
import org.junit.jupiter.api.Test;

class ReadAheadTest {
    private static final int FILE_BYTES = 1 << 20;
    private static final int BLOCK_BYTES = 4 << 10;

    private final Allocator allocator = new Allocator();
    private int reads;

    /// Of bytes that tell their place.
    private final ReadFile file = new ReadFile() {
        @Override
        public long bytes() {
            return FILE_BYTES;
        }

        @Override
        public long map() {
            throw new UnsupportedOperationException("not to be mapped");
        }

        @Override
        public void read(long position, long address, int bytes) {
            reads++;
            for (int at = 0; at < bytes; at += Long.BYTES) {
                Memory.putLong(address + at, position + at);
            }
        }

        @Override
        public void close() {}
    };

    private void readInOrder(ReadAhead ahead) throws IOException {
        for (long at = 0; at < FILE_BYTES; at += BLOCK_BYTES) {
            assertThat(Memory.getLong(ahead.at(at, BLOCK_BYTES))).isEqualTo(at);
        }
    }

    /// What a short one reads in vain is little, and a long one makes few calls.
    @Test
    void aRangeReadsTwiceAsMuchWithEachCall() throws IOException {
        try (ReadAhead ahead = ReadAhead.throughPageCache(file, allocator)) {
            ahead.at(0, BLOCK_BYTES);
            assertThat(ahead.capacity()).isEqualTo(16 << 10);
            readInOrder(ahead);
        }
        assertThat(reads).isEqualTo(8); // of 16, 32, 64, 128 and, the last ones, 256 KiB
        assertThat(allocator.allocatedBytes()).isZero();
    }

    /// They share what all of them may take, and give it back, or later ones would read block by block.
    @Test
    void rangesThatEndedTakeNothingFromLaterOnes() throws IOException {
        for (int range = 0; range < 3_000; range++) {
            try (ReadAhead ahead = ReadAhead.throughPageCache(file, allocator)) {
                ahead.at(0, BLOCK_BYTES);
                ahead.letGo();
                ahead.at(0, BLOCK_BYTES);
            }
        }
        reads = 0;
        try (ReadAhead ahead = ReadAhead.throughPageCache(file, allocator)) {
            readInOrder(ahead);
        }
        assertThat(reads).isEqualTo(8);
    }

    /// A client may open many ranges; one that finds no more room reads the block that it shows.
    @Test
    void allRangesTogetherTakeNoMoreThanTheyMay() throws IOException {
        List<ReadAhead> ranges = new ArrayList<>();
        for (int range = 0; range < 2_000; range++) {
            ReadAhead ahead = ReadAhead.throughPageCache(file, allocator);
            ranges.add(ahead);
            assertThat(Memory.getLong(ahead.at(BLOCK_BYTES, BLOCK_BYTES))).isEqualTo(BLOCK_BYTES);
        }
        assertThat(allocator.allocatedBytes()).isBetween(16L << 20, (16L << 20) + 2_000 * BLOCK_BYTES);
        ranges.forEach(ReadAhead::close);
        assertThat(allocator.allocatedBytes()).isZero();
    }
}
