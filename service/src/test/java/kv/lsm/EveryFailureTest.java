package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.LongAdder;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.StreamHandler;
import java.util.stream.Stream;
import kv.Eventually;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/// One scenario again and again, each time with the next call to the disk failing, until no call is left to
/// fail. Where the disk is full for a while, from every second call on or so; `-Dkv.failures=all` for every one.
class EveryFailureTest {
    private static final Path DIRECTORY = Path.of("/faulty");
    private static final int WRITES = 300;
    private static final int KEYS = 60;
    /// so many writes are begun before the first of them is awaited, and as many before them are not
    private static final int TOGETHER = 4;

    /// which fails when the disk is full, and says so
    private static final int CALLS_OF_AN_OPENING = 20;
    private static final int CALLS_OF_A_FULL_DISK = 5;

    private static final long ENOUGH = 0;
    private static final long NEXT_TO_NOTHING = 1;

    private static final boolean ALL = "all".equals(System.getProperty("kv.failures"));
    private static final LongAdder CASES = new LongAdder();

    @AfterAll
    static void tellCases() {
        System.out.println("scenarios with a failing call: cases=" + CASES.sum());
    }

    private record Modes(WalMode wal, ReadMode read, long tableMemoryBytes) {
        StoreOptions options() {
            return EveryFailureTest.options(wal, read).toBuilder()
                    .tableMemoryBytes(tableMemoryBytes)
                    .build();
        }
    }

    private static StoreOptions options(WalMode wal, ReadMode read) {
        return StoreOptions.at(DIRECTORY).toBuilder()
                .wal(wal)
                .memtableBytes(8 << 10)
                .tableBytes(4 << 10)
                .level1Bytes(8 << 10)
                .level0(2, 6, 9)
                .read(read)
                .build();
    }

    @TestFactory
    Stream<DynamicTest> whicheverCallFailsNothingAcknowledgedIsLost() {
        return Stream.of(
                        new Modes(WalMode.ALWAYS, ReadMode.MMAP, ENOUGH),
                        new Modes(WalMode.ALWAYS, ReadMode.PREAD, ENOUGH),
                        new Modes(WalMode.OS, ReadMode.MMAP, ENOUGH),
                        new Modes(WalMode.OS, ReadMode.MMAP, NEXT_TO_NOTHING))
                .map(modes -> DynamicTest.dynamicTest(modes.toString(), () -> {
                    int failing = 1;
                    while (scenarioFails(failing, modes)) {
                        failing++;
                    }
                    assertThat(failing).as("calls that could fail").isGreaterThan(100);
                }));
    }

    @TestFactory
    Stream<DynamicTest> fromWhicheverCallOnTheDiskIsFullForAWhileTheStoreGoesOnAfterwards() {
        return Stream.of(
                        new Modes(WalMode.ALWAYS, ReadMode.MMAP, ENOUGH),
                        new Modes(WalMode.OS, ReadMode.MMAP, NEXT_TO_NOTHING))
                .map(modes -> DynamicTest.dynamicTest(modes.toString(), () -> {
                    int failing = CALLS_OF_AN_OPENING;
                    while (fullForAWhile(failing, modes)) {
                        failing += ALL ? 1 : 1 + failing % 3;
                    }
                    assertThat(failing).as("calls that could fail").isGreaterThan(100);
                }));
    }

    /// False when the scenario ended before its call number `failing`.
    private static boolean fullForAWhile(int failing, Modes modes) {
        FaultyDisk disk = new FaultyDisk();
        Scenario scenario = new Scenario(modes.options());
        int[] left = {CALLS_OF_A_FULL_DISK};
        disk.setFaults((count, what) -> count >= failing && needsRoom(what) && left[0]-- > 0);
        String when = "full from call " + failing + " on";
        assertThat(scenario.play(disk)).as("writes that failed, " + when).isFalse();
        boolean reached = disk.calls() >= failing;
        scenario.check(disk.losePower(new SplittableRandom(failing)), when); // it was closed in order
        return reached;
    }

    private static boolean needsRoom(String what) {
        return what.startsWith("create ") || what.startsWith("write ");
    }

    /// False when the scenario ended before its call number `failing`.
    private static boolean scenarioFails(int failing, Modes modes) {
        FaultyDisk disk = new FaultyDisk();
        Scenario scenario = new Scenario(modes.options());
        disk.setFaults((count, what) -> count == failing);
        boolean reached = scenario.play(disk) || disk.calls() >= failing;
        // with OS the promise is for killed processes only
        FaultyDisk after =
                modes.wal == WalMode.ALWAYS ? disk.losePower(new SplittableRandom(failing)) : disk.killProcess();
        scenario.check(after, "call " + failing + " failed");
        return reached;
    }

    /// Writes, flushes, compactions, reads and an orderly close.
    private static final class Scenario {
        private static final List<byte[]> ABSENT = Arrays.asList((byte[]) null);

        private final StoreOptions options;
        /// What the value of a key may be: those since, and with, the last acknowledged one; null for absent.
        private final TreeMap<Integer, List<byte[]>> possible = new TreeMap<>();
        private final List<PendingWrite> begun = new ArrayList<>();

        Scenario(StoreOptions options) {
            this.options = options;
        }

        /// True when an operation failed.
        boolean play(FaultyDisk disk) {
            CASES.increment();
            Allocator allocator = new Allocator();
            LsmStore store;
            try {
                store = LsmStore.open(options, disk, allocator);
            } catch (StoreException e) {
                assertThat(allocator.allocatedBytes())
                        .as("memory after a failed opening")
                        .isZero();
                assertThat(disk.openHandles())
                        .as("open files after a failed opening")
                        .isZero();
                return true;
            }
            boolean failed = false;
            try {
                for (int i = 0; i < WRITES; i++) {
                    failed |= i / TOGETHER % 2 == 0 ? write(store, i) : begin(store, i);
                    read(store, i % KEYS);
                    if (begun.size() == TOGETHER) {
                        failed |= awaitBegun();
                    }
                }
                failed |= awaitBegun();
            } finally {
                failed |= close(store);
            }
            assertThat(allocator.allocatedBytes()).as("memory after closing").isZero();
            assertThat(disk.openHandles()).as("open files after closing").isZero();
            assertThat(disk.mappedBytes()).as("mapped bytes after closing").isZero();
            return failed;
        }

        private boolean write(Store store, int i) {
            int key = i * 7 % KEYS;
            byte[] value = valueOrNull(i);
            try {
                if (value == null) {
                    store.delete(key(key));
                } else {
                    store.put(key(key), value);
                }
                possible.put(key, Arrays.asList((byte[]) value));
                return false;
            } catch (StoreFailedException e) {
                assertThat(store.isWritable()).isFalse();
                isAlsoPossible(key, value);
                return true;
            }
        }

        private boolean begin(Store store, int i) {
            int key = i * 7 % KEYS;
            isAlsoPossible(key, valueOrNull(i));
            try {
                PendingWrite write = store.begin(key(key), valueOrNull(i));
                begun.add(() -> {
                    write.await();
                    possible.put(key, Arrays.asList((byte[]) valueOrNull(i)));
                });
                return false;
            } catch (StoreFailedException e) {
                return true;
            }
        }

        private boolean awaitBegun() {
            boolean failed = false;
            for (PendingWrite write : begun) {
                try {
                    write.await();
                } catch (StoreFailedException e) {
                    failed = true;
                }
            }
            begun.clear();
            return failed;
        }

        private void isAlsoPossible(int key, byte[] value) {
            List<byte[]> either = new ArrayList<>(possible.getOrDefault(key, ABSENT));
            either.add(value);
            possible.put(key, either);
        }

        /// A failed store answers as before, and a failed read says so; neither gives a wrong value.
        private void read(Store store, int key) {
            try {
                byte[] found = store.tryGet(key(key));
                assertPossible(key, found == Store.WOULD_WAIT ? store.get(key(key)) : found, "while open");
            } catch (StoreException e) {
                assertThat(e).hasMessageContaining("read");
            }
        }

        private boolean close(Store store) {
            try {
                store.close();
                return false;
            } catch (StoreFailedException e) {
                return true;
            }
        }

        void check(FaultyDisk disk, String when) {
            try (Store store = LsmStore.open(options, disk, new Allocator())) {
                possible.keySet().forEach(key -> assertPossible(key, store.get(key(key)), when));
                store.put(key(0), value(0));
                assertThat(store.get(key(0))).isEqualTo(value(0));
            }
        }

        private void assertPossible(int key, byte[] found, String when) {
            List<byte[]> values = possible.getOrDefault(key, ABSENT);
            assertThat(values)
                    .as("value of key %d, %s", key, when)
                    .anySatisfy(value -> assertThat(found).isEqualTo(value));
        }

        private static byte[] key(int i) {
            return ByteBuffer.allocate(4).putInt(i).array();
        }

        private static byte[] valueOrNull(int i) {
            return i % 5 == 0 ? null : value(i);
        }

        private static byte[] value(int i) {
            byte[] value = new byte[40 + i % 300];
            new SplittableRandom(i).nextBytes(value);
            return value;
        }
    }

    @Test
    void aFailedSyncIsNotTriedAgain() {
        FaultyDisk disk = new FaultyDisk();
        Store store = LsmStore.open(options(WalMode.ALWAYS, ReadMode.MMAP), disk, new Allocator());
        store.put(new byte[] {1}, new byte[] {1});
        int[] syncs = {0};
        disk.setFaults((count, what) -> what.equals("sync log") && ++syncs[0] == 1);
        assertThatThrownBy(() -> store.put(new byte[] {2}, new byte[] {2})).isInstanceOf(StoreFailedException.class);
        assertThatThrownBy(() -> store.put(new byte[] {3}, new byte[] {3}))
                .isInstanceOf(StoreFailedException.class)
                .hasMessageContaining("takes no more writes");
        assertThat(store.isWritable()).isFalse();
        assertThat(store.get(new byte[] {1})).as("reads go on").containsExactly(1);
        assertThat(store.get(new byte[] {2}))
                .as("what was not acknowledged is not seen")
                .isNull();
        store.close();
        assertThat(syncs[0]).as("syncs of the log after the failed one").isEqualTo(1);
    }

    /// `/v0/ready` says that the log tells why, and nobody may write for hours.
    @Test
    void whatEndedWritingIsInTheLogBeforeAnybodyWritesAgain() {
        List<LogRecord> lines = new CopyOnWriteArrayList<>();
        Handler handler = new StreamHandler() {
            @Override
            public synchronized void publish(LogRecord line) {
                lines.add(line);
            }
        };
        Logger logger = Logger.getLogger(Failure.class.getName());
        logger.addHandler(handler);
        FaultyDisk disk = new FaultyDisk();
        Store store = LsmStore.open(options(WalMode.INTERVAL, ReadMode.MMAP), disk, new Allocator());
        try {
            disk.setFaults((count, what) -> what.equals("sync log"));
            store.put(new byte[] {1}, new byte[] {1});
            Eventually.holds(() -> !lines.isEmpty());
            assertThat(store.isWritable()).isFalse();
            assertThat(lines).hasSize(1);
            assertThat(lines.getFirst().getMessage())
                    .startsWith("the store takes no more writes: a write-ahead log could not be synced: ")
                    .doesNotContain("\n");
            assertThat(lines.getFirst().getThrown()).isNull();
        } finally {
            logger.removeHandler(handler);
            assertThatThrownBy(store::close).isInstanceOf(StoreFailedException.class);
        }
    }
}
