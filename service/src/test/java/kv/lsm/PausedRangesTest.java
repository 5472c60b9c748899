package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.stream.Stream;
import kv.Eventually;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/// Ranges that nobody reads keep a bounded amount of memory together, and go on where they were.
class PausedRangesTest {
    private static final int RUNS = 3;
    private static final int VALUES = 4;
    private static final int CURSORS = 14;
    /// The store's own threads may be at something meanwhile.
    private static final long OTHER_BYTES = 1 << 20;

    @TempDir
    Path directory;

    @TestFactory
    Stream<DynamicTest> pausedRangesKeepABoundedAmountOfMemoryAndGoOnWhereTheyWere() {
        return Seeds.tests(1, seed -> {
            for (ReadMode read : ReadMode.values()) {
                for (Compression compression : Compression.values()) {
                    for (long tableMemoryBytes : new long[] {0, 1}) {
                        StoreOptions options =
                                StoreOptions.at(directory.resolve(read + "-" + compression + "-" + tableMemoryBytes))
                                        .toBuilder()
                                        .wal(WalMode.OS)
                                        .compaction(CompactionPolicyKind.NONE)
                                        .read(read)
                                        .compression(compression)
                                        .tableMemoryBytes(tableMemoryBytes)
                                        .build();
                        readByTurns(new SplittableRandom(seed), options);
                    }
                }
            }
        });
    }

    /// Or each later one would read its blocks again after each pause.
    @Test
    void aRangeThatEndsGivesBackWhatItWasToKeep() {
        Allocator allocator = new Allocator();
        StoreOptions options = StoreState.options(WalMode.NONE).toBuilder()
                .read(ReadMode.PREAD)
                .stallLimit(Duration.ZERO)
                .build();
        try (Store store = LsmStore.open(options, new FaultyDisk(), allocator)) {
            store.put(new byte[] {1}, new byte[1 << 20]);
            store.administration().flush(() -> false);
            assertThat(store.administration().awaitIdle(Duration.ofMinutes(1), () -> false))
                    .isTrue();
            for (long kept = 0; kept < 2 * RangeMemory.BYTES_MAX; kept += 1 << 20) {
                try (RangeCursor cursor = store.range(new byte[] {1}, null)) {
                    assertThat(cursor.next()).isTrue();
                    cursor.pause();
                    assertThat(allocator.allocatedBytes()).as("with its block").isGreaterThan(1 << 20);
                }
            }
        }
    }

    private static void readByTurns(SplittableRandom random, StoreOptions options) {
        try (Store store = LsmStore.open(options)) {
            NavigableMap<byte[], byte[]> model = filled(random, store);
            long before = store.metrics().offHeapBytes();
            List<Reader> readers = new ArrayList<>();
            for (int i = 0; i < CURSORS; i++) {
                readers.add(new Reader(store.range(new byte[1], null), model));
            }
            int ended = 0;
            while (ended < CURSORS) {
                Reader reader = readers.get(random.nextInt(CURSORS));
                if (!reader.hasEnded) {
                    reader.goOn(random);
                    ended += reader.hasEnded ? 1 : 0;
                }
                assertThat(store.metrics().offHeapBytes() - before)
                        .as("%s", options)
                        .isLessThanOrEqualTo(RangeMemory.BYTES_MAX + OTHER_BYTES);
            }
            readers.forEach(reader -> reader.cursor.close());
            assertThat(store.metrics().offHeapBytes() - before).isLessThanOrEqualTo(OTHER_BYTES);
        }
    }

    /// Each run has keys between those of the others, so that a range has a block of each.
    private static NavigableMap<byte[], byte[]> filled(SplittableRandom random, Store store) {
        NavigableMap<byte[], byte[]> model = new TreeMap<>(Arrays::compareUnsigned);
        for (int run = 0; run < RUNS; run++) {
            for (int i = 0; i < VALUES; i++) {
                byte[] key = Records.bytes("some-long-key-%02d-%d".formatted(i, run));
                byte[] value = new byte[1 << 20];
                random.nextBytes(value);
                Arrays.fill(value, 1 << 19, 1 << 20, (byte) run); // so that it can be compressed
                store.put(key, value);
                model.put(key, value);
            }
            store.administration().flush(() -> false);
        }
        store.administration().awaitIdle(Duration.ofMinutes(1), () -> false);
        Eventually.holds(() -> store.metrics().pinnedBytes() == 0);
        return model;
    }

    /// A cursor beside what it has to find.
    private static final class Reader {
        final RangeCursor cursor;
        boolean hasEnded;
        private final Iterator<Map.Entry<byte[], byte[]>> wanted;
        private Map.Entry<byte[], byte[]> current;

        Reader(RangeCursor cursor, NavigableMap<byte[], byte[]> model) {
            this.cursor = cursor;
            wanted = model.entrySet().iterator();
        }

        void goOn(SplittableRandom random) {
            if (current == null || random.nextInt(3) == 0) {
                hasEnded = !cursor.next();
                assertThat(hasEnded).isEqualTo(!wanted.hasNext());
                current = hasEnded ? null : wanted.next();
            }
            if (current != null) {
                readSome(random);
            }
            cursor.pause();
        }

        private void readSome(SplittableRandom random) {
            byte[] value = current.getValue();
            if (random.nextBoolean()) {
                assertThat(cursor.key()).isEqualTo(current.getKey());
            }
            if (random.nextBoolean()) {
                assertThat(cursor.valueLength()).isEqualTo(value.length);
            }
            int from = random.nextInt(value.length);
            byte[] part = new byte[1 + random.nextInt(Math.min(1 << 15, value.length - from))];
            cursor.copyValue(from, part, 0, part.length);
            assertThat(Arrays.equals(part, 0, part.length, value, from, from + part.length))
                    .as("bytes from %d on", from)
                    .isTrue();
        }
    }
}
