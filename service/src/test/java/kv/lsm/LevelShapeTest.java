package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What becomes of the levels when more is written, for days, than can be compacted: policy and rates without
/// a file. Keys are evenly spread and never written twice; sizes are the default ones.
class LevelShapeTest {
    private static final long MB = 1 << 20;
    private static final int KEYS = 1 << 30;
    private static final StoreOptions OPTIONS = StoreOptions.at(Path.of("/store"));
    /// of level 0; so many that level 1 would exceed its bound if nothing left it
    private static final int MERGES = 30;
    private static final double FULL_BYTES_PER_SECOND = 100 * MB;

    private static final class Simulation {
        private final LeveledPolicy policy = LeveledPolicy.of(OPTIONS);
        private final double compactionBytesPerSecond;
        private Version version = Version.EMPTY;
        private long nextNumber = 1;
        private double bytesInMemtable;
        private int fromLevel0;

        Simulation(double compactionBytesPerSecond) {
            this.compactionBytesPerSecond = compactionBytesPerSecond;
        }

        private static byte[] key(long number) {
            return ByteBuffer.allocate(4).putInt((int) number).array();
        }

        private static long number(byte[] key) {
            return ByteBuffer.wrap(key).getInt();
        }

        private TableMetadata table(int level, long run, long first, long last, long bytes) {
            return new TableMetadata(nextNumber++, level, run, bytes, 1, 0, key(first), key(last));
        }

        /// Writers fill memtables until they are stopped.
        private void write(double seconds) {
            for (double left = seconds; left > 0; ) {
                int runs = version.level(0).size();
                if (runs >= OPTIONS.level0Stop()) {
                    return;
                }
                double rate =
                        runs >= OPTIONS.level0Slowdown() ? OPTIONS.slowdownBytesPerSecond() : FULL_BYTES_PER_SECOND;
                double untilFull = (OPTIONS.memtableBytes() - bytesInMemtable) / rate;
                if (untilFull > left) {
                    bytesInMemtable += rate * left;
                    return;
                }
                bytesInMemtable = 0;
                left -= untilFull;
                long run = nextNumber;
                apply(List.of(), List.of(table(0, run, 0, KEYS - 1, OPTIONS.memtableBytes())));
            }
        }

        private void apply(List<Long> removed, List<TableMetadata> added) {
            version = version.apply(new VersionEdit(0, false, nextNumber, removed, added));
        }

        private void compact(CompactionChoice choice) {
            List<TableMetadata> inputs = choice.tables();
            long bytes = inputs.stream().mapToLong(TableMetadata::bytes).sum();
            long first = inputs.stream()
                    .mapToLong(table -> number(table.smallest()))
                    .min()
                    .orElseThrow();
            long last = inputs.stream()
                    .mapToLong(table -> number(table.largest()))
                    .max()
                    .orElseThrow();
            int count = (int) Math.max(1, Math.ceilDiv(bytes, OPTIONS.tableBytes()));
            if (!choice.isMove()) {
                write(bytes / compactionBytesPerSecond);
            }
            List<TableMetadata> outputs = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                long from = first + (last - first + 1) * i / count;
                long to = first + (last - first + 1) * (i + 1) / count - 1;
                outputs.add(table(choice.outputLevel(), choice.outputRun(), from, to, bytes / count));
            }
            apply(inputs.stream().map(TableMetadata::number).toList(), outputs);
            if (choice.inputs().getFirst().level() == 0) {
                fromLevel0++;
            }
        }

        private long bytes(int level) {
            return version.level(level).stream().mapToLong(Run::bytes).sum();
        }

        /// The most that level 1 ever held.
        private long play(int merges) {
            long most = 0;
            while (fromLevel0 < merges) {
                policy.choose(version).ifPresentOrElse(this::compact, () -> write(1));
                most = Math.max(most, bytes(1));
            }
            return most;
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {5, 30, 120})
    void level1StaysWithinBoundsHoweverSlowCompactionIs(int compactionMegabytesPerSecond) {
        Simulation store = new Simulation(compactionMegabytesPerSecond * MB);
        long most = store.play(MERGES);
        long level0Most = OPTIONS.level0Stop() * OPTIONS.memtableBytes();
        assertThat(most)
                .as("level 1 is merged into up to so many times level 0, and has then all of that more")
                .isLessThanOrEqualTo((OPTIONS.levelMultiplier() + 1) * level0Most);
        assertThat(store.bytes(2)).as("level 1 is not starved").isPositive();
    }

    @Test
    void theBoundIsOneThatLevel0AloneWouldExceed() {
        assertThat(MERGES * CompactionPolicy.level0Urgent(OPTIONS))
                .isGreaterThan((OPTIONS.levelMultiplier() + 1) * OPTIONS.level0Stop());
    }
}
