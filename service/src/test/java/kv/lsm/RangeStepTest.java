package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.stream.Stream;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/// A step of a range looks at no more records than it was told to, whatever there is to pass over.
class RangeStepTest {
    private static final int STEP_RECORDS = 1_000;
    private static final int WRITES = 100_000;

    @TempDir
    Path directory;

    private Store open(long memtableBytes) {
        return LsmStore.open(StoreOptions.at(directory).toBuilder()
                .wal(WalMode.NONE)
                .memtableBytes(memtableBytes)
                .compaction(CompactionPolicyKind.NONE)
                .build());
    }

    private static byte[] key(long number) {
        return ByteBuffer.allocate(8).putLong(number).array();
    }

    /// How many steps of at most `recordsMax` found no entry before the one that ended with `last`.
    private static int stepsUntil(RangeCursor.Step last, RangeCursor cursor, int recordsMax) {
        for (int steps = 0; ; steps++) {
            long before = cursor.recordsPassed();
            RangeCursor.Step step = cursor.step(recordsMax);
            long passed = cursor.recordsPassed() - before;
            if (step != RangeCursor.Step.NOT_YET) {
                assertThat(step).isEqualTo(last);
                assertThat(passed).isLessThan(recordsMax);
                return steps;
            }
            assertThat(passed).isEqualTo(recordsMax);
        }
    }

    /// Puts the keys of `[from, to)`. An iterator sees what is added later only where it stands on nodes that are
    /// not replaced by larger ones; so many keys have made their nodes large.
    private static void put(Store store, int from, int to) {
        for (int i = from; i < to; i++) {
            store.put(key(i), key(i));
        }
    }

    @Test
    void keysThatAreWrittenBehindAnOpenRangeArePassedAFewAtATime() {
        try (Store store = open(64 << 20)) {
            put(store, 0, WRITES);
            try (RangeCursor cursor = store.range(key(WRITES - 1), null)) {
                put(store, WRITES, 2 * WRITES);
                assertThat(cursor.step(STEP_RECORDS)).isEqualTo(RangeCursor.Step.ENTRY);
                assertThat(stepsUntil(RangeCursor.Step.END, cursor, STEP_RECORDS))
                        .isEqualTo(WRITES / STEP_RECORDS);
                assertThat(cursor.recordsPassed()).isEqualTo(WRITES);
            }
        }
    }

    @Test
    void keysBehindTheEndOfARangeAreNotLookedAt() {
        try (Store store = open(64 << 20)) {
            put(store, 0, WRITES);
            try (RangeCursor cursor = store.range(key(WRITES - 1), key(WRITES))) {
                put(store, WRITES, 2 * WRITES);
                assertThat(cursor.step(1)).isEqualTo(RangeCursor.Step.ENTRY);
                assertThat(cursor.step(1)).isEqualTo(RangeCursor.Step.END);
                assertThat(cursor.recordsPassed()).isZero();
            }
        }
    }

    /// What the range sees lies below newer versions in the memtable, or in a table.
    @Test
    void versionsOfOneKeyThatAreNewerThanARangeArePassedAFewAtATime() {
        for (boolean inTable : new boolean[] {false, true}) {
            try (Store store = open(64 << 20)) {
                store.put(key(1), key(7));
                if (inTable) {
                    store.administration().flush(() -> false);
                }
                store.put(key(0), key(0));
                store.put(key(2), key(2));
                try (RangeCursor cursor = store.range(key(0), null)) {
                    for (int i = 0; i < WRITES; i++) {
                        store.put(key(1), key(i));
                    }
                    assertThat(cursor.step(1)).isEqualTo(RangeCursor.Step.ENTRY);
                    assertThat(stepsUntil(RangeCursor.Step.ENTRY, cursor, STEP_RECORDS))
                            .as("in a table: %s", inTable)
                            .isEqualTo(WRITES / STEP_RECORDS);
                    assertThat(cursor.value()).isEqualTo(key(7));
                    assertThat(cursor.step(1)).isEqualTo(RangeCursor.Step.ENTRY);
                    assertThat(cursor.step(1)).isEqualTo(RangeCursor.Step.END);
                }
            }
        }
    }

    @Test
    void twoMillionDeletedKeysArePassedAFewAtATime() {
        int deleted = 2_000_000;
        int recordsMax = 4_096;
        try (Store store = open(512 << 20)) {
            for (int i = 0; i < deleted; i++) {
                store.delete(key(i));
            }
            store.put(key(deleted), key(7));
            for (boolean inTables : new boolean[] {false, true}) {
                if (inTables) {
                    store.administration().flush(() -> false);
                }
                try (RangeCursor cursor = store.range(key(0), null)) {
                    assertThat(stepsUntil(RangeCursor.Step.ENTRY, cursor, recordsMax))
                            .as("in tables: %s", inTables)
                            .isEqualTo(deleted / recordsMax);
                    assertThat(cursor.recordsPassed()).isEqualTo(deleted);
                    assertThat(cursor.value()).isEqualTo(key(7));
                    assertThat(cursor.step(recordsMax)).isEqualTo(RangeCursor.Step.END);
                }
            }
        }
    }

    @TestFactory
    Stream<DynamicTest> aRangeSeesTheStoreAsItWasWhateverIsWrittenBetweenItsSteps() {
        return Seeds.tests(20, RangeStepTest::writeBetweenSteps);
    }

    private static void writeBetweenSteps(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        RandomKeys keys = new RandomKeys(random);
        StoreOptions options = StoreOptions.at(Path.of("/faulty")).toBuilder()
                .wal(WalMode.OS)
                .memtableBytes(random.nextBoolean() ? 16 << 10 : 1 << 20)
                .level0(2, 200, 300)
                .build();
        try (Store store = LsmStore.open(options, new FaultyDisk(), new Allocator())) {
            NavigableMap<byte[], byte[]> model = new TreeMap<>(Arrays::compareUnsigned);
            for (int i = random.nextInt(600); i > 0; i--) {
                write(random, keys, store, model);
            }
            byte[] start = keys.next();
            List<byte[]> wanted = new ArrayList<>();
            model.tailMap(start, true).forEach((key, value) -> wanted.addAll(List.of(key, value)));
            List<byte[]> found = new ArrayList<>();
            try (RangeCursor cursor = store.range(start, null)) {
                int writes = 1_000;
                while (true) {
                    for (int i = random.nextInt(20); i > 0 && writes > 0; i--, writes--) {
                        write(random, keys, store, model);
                    }
                    RangeCursor.Step step = cursor.step(1 + random.nextInt(3));
                    if (step == RangeCursor.Step.END) {
                        break;
                    } else if (step == RangeCursor.Step.ENTRY) {
                        found.addAll(List.of(cursor.key(), cursor.value()));
                    }
                    if (random.nextInt(4) == 0) {
                        cursor.pause();
                    }
                }
            }
            assertThat(found).containsExactlyElementsOf(wanted);
        }
    }

    private static void write(
            SplittableRandom random, RandomKeys keys, Store store, NavigableMap<byte[], byte[]> model) {
        byte[] key = keys.next();
        if (random.nextInt(4) == 0) {
            store.delete(key);
            model.remove(key);
        } else {
            byte[] value = keys.value();
            store.put(key, value);
            model.put(key, value);
        }
    }
}
