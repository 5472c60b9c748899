package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.log.WriteAheadLogFormat;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Checksum;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Batches that set the same keys to the same number, again and again: whatever is found after a crash, the
/// keys agree. Each call meets one end of three; `-Dkv.failures=all` lets it meet all of them.
class BatchAtomicityTest {
    private static final Path DIRECTORY = Path.of("/faulty");
    private static final int KEYS = 6;
    private static final int MANY_KEYS = 1_000;
    /// Enough for flushes and compactions.
    private static final int BATCHES = "all".equals(System.getProperty("kv.failures")) ? 60 : 24;
    /// Ways to end at each call: 0 kills the process, others cut the power.
    private static final int SEEDS = 3;
    private static final boolean ALL = "all".equals(System.getProperty("kv.failures"));

    private static StoreOptions options(WalMode wal) {
        return StoreOptions.at(DIRECTORY).toBuilder()
                .wal(wal)
                .memtableBytes(16 << 10)
                .tableBytes(8 << 10)
                .level1Bytes(16 << 10)
                .level0(2, 6, 9)
                .build();
    }

    private static byte[] key(int i) {
        return Records.bytes("key-" + i);
    }

    /// Long enough that a batch covers several sectors; without zeros, so that only a lost sector ends in them.
    private static byte[] value(int number) {
        return Records.bytes(("" + number).repeat(400));
    }

    private static WriteBatch batch(int number) {
        List<WriteBatch.Write> writes = new ArrayList<>();
        for (int i = 0; i < KEYS; i++) {
            writes.add(new WriteBatch.Write(key(i), value(number)));
        }
        writes.add(new WriteBatch.Write(Records.bytes("deleted-" + (number - 1)), null));
        writes.add(new WriteBatch.Write(Records.bytes("deleted-" + number), value(number)));
        return new WriteBatch(writes);
    }

    /// The number that all keys agree on, 0 for none.
    private static int agreed(Store store, String when) {
        int agreed = -1;
        for (int number = 0; number <= BATCHES && agreed < 0; number++) {
            byte[] wanted = number == 0 ? null : value(number);
            byte[] found = store.get(key(0));
            agreed = wanted == null ? (found == null ? 0 : -1) : java.util.Arrays.equals(found, wanted) ? number : -1;
        }
        assertThat(agreed)
                .as("%s: the first key has a value that was written", when)
                .isNotNegative();
        for (int i = 0; i < KEYS; i++) {
            assertThat(store.get(key(i)))
                    .as("%s: key %d of batch %d", when, i, agreed)
                    .isEqualTo(agreed == 0 ? null : value(agreed));
        }
        for (int number = 0; number <= BATCHES; number++) {
            assertThat(store.get(Records.bytes("deleted-" + number)) != null)
                    .as("%s: the key that only batch %d sets, after batch %d", when, number, agreed)
                    .isEqualTo(number == agreed && agreed > 0);
        }
        return agreed;
    }

    @TestFactory
    Stream<DynamicTest> aCrashAtAnyCallLeavesAllOfABatchOrNothing() {
        return Stream.of(WalMode.ALWAYS, WalMode.OS, WalMode.INTERVAL)
                .map(wal -> DynamicTest.dynamicTest(wal.toString(), () -> {
                    int cases = 0;
                    for (int call = 1; ; call++) {
                        boolean reached = false;
                        for (int seed = 0; seed < SEEDS; seed++) {
                            if (ALL || call % SEEDS == seed) {
                                reached |= crashAt(call, wal, seed);
                                cases++;
                            }
                        }
                        if (!reached) {
                            break;
                        }
                    }
                    System.out.println("batches cut off: " + wal + ", cases=" + cases);
                    assertThat(cases).isGreaterThan(100);
                }));
    }

    /// From that call on every call fails, and then the machine or the process ends. False when the writes
    /// ended before.
    private static boolean crashAt(int call, WalMode wal, int seed) {
        FaultyDisk disk = new FaultyDisk();
        disk.setFaults((count, what) -> count >= call);
        int acknowledged = 0;
        LsmStore store = null;
        try {
            StoreOptions hasty = options(wal).toBuilder()
                    .stallLimit(Duration.ofMillis(30)) // the disk fails for ever, and lets writers wait
                    .build();
            store = LsmStore.open(hasty, disk, new Allocator());
            for (int number = 1; number <= BATCHES; number++) {
                write(store, number, () -> disk.calls() >= call);
                acknowledged = number;
            }
            // or how many calls there were would be up to the threads that flush and compact
            store.administration().awaitIdle(Duration.ofSeconds(10), () -> false);
        } catch (StoreException e) {
            assertThat(e).as("a planted fault").isNotInstanceOf(CorruptionException.class);
        }
        boolean reached = disk.calls() >= call;
        boolean powerCut = seed > 0;
        FaultyDisk after = powerCut ? disk.losePower(new SplittableRandom(call * 10L + seed)) : disk.killProcess();
        close(store);
        String when = wal + ", call " + call + ", seed " + seed;
        try (Store again = open(options(wal), after, when)) {
            int found = agreed(again, when);
            if (!powerCut || wal == WalMode.ALWAYS) {
                assertThat(found).as(when).isGreaterThanOrEqualTo(acknowledged);
            }
            again.begin(batch(BATCHES)).await();
            assertThat(again.get(key(0))).isEqualTo(value(BATCHES));
        }
        return reached;
    }

    /// A write that waited too long is written again, unless the disk has failed: the machine may be busy.
    private static void write(Store store, int number, BooleanSupplier hasFailed) {
        while (true) {
            try {
                store.begin(batch(number)).await();
                return;
            } catch (WriteStalledException e) {
                if (hasFailed.getAsBoolean()) {
                    throw e;
                }
            }
        }
    }

    private static Store open(StoreOptions options, FaultyDisk disk, String when) {
        try {
            return LsmStore.open(options, disk, new Allocator());
        } catch (CorruptionException e) {
            throw new AssertionError(when + ": " + e.getMessage(), e);
        }
    }

    private static void close(LsmStore storeOrNull) {
        try {
            if (storeOrNull != null) {
                storeOrNull.close();
            }
        } catch (StoreException e) {
            assertThat(e).isNotInstanceOf(CorruptionException.class); // the disk is gone: that is what the store says
        }
    }

    /// Cut off at every eighth byte, as a killed process or a lost end leaves it.
    @Test
    void aLogCutOffAnywhereHoldsWholeBatchesOnly() throws Exception {
        FaultyDisk disk = new FaultyDisk();
        StoreOptions options =
                options(WalMode.OS).toBuilder().memtableBytes(64 << 10).build();
        LsmStore store = LsmStore.open(options, disk, new Allocator());
        for (int number = 1; number <= 5; number++) {
            store.begin(batch(number)).await();
        }
        FaultyDisk killed = disk.killProcess();
        close(store);
        String log = killed.list(DIRECTORY).stream()
                .filter(name -> name.endsWith(".log"))
                .sorted()
                .findFirst()
                .orElseThrow();
        byte[] content = killed.content(log);
        int before = 0;
        for (int end = 64; end < content.length && before < 5; end += 8) {
            byte[] cut = content.clone();
            java.util.Arrays.fill(cut, end, cut.length, (byte) 0);
            FaultyDisk copy = killed.killProcess();
            copy.setContent(log, cut);
            try (Store again = LsmStore.open(options, copy, new Allocator())) {
                int found = agreed(again, "cut off at " + end);
                assertThat(found).isBetween(before, before + 1);
                before = found;
            }
        }
        assertThat(before).isEqualTo(5);
    }

    @ParameterizedTest
    @EnumSource
    void ofTwoWritesOfAKeyTheLaterOneCountsAndLargeBatchesGetALogOfTheirOwn(WalMode wal) {
        FaultyDisk disk = new FaultyDisk();
        StoreOptions options = options(wal);
        try (Store store = LsmStore.open(options, disk, new Allocator())) {
            List<WriteBatch.Write> writes = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                writes.add(new WriteBatch.Write(key(i % 50), i % 50 == 49 && i > 150 ? null : value(i)));
            }
            store.begin(new WriteBatch(writes)).await();
            store.begin(new WriteBatch(List.of())).await();
            assertThatThrownBy(() -> store.begin(new WriteBatch(List.of(
                            new WriteBatch.Write(key(0), value(0)), new WriteBatch.Write(new byte[0], value(1))))))
                    .isInstanceOf(IllegalArgumentException.class);
            check(store);
            assertThat(store.metrics().puts()).isEqualTo(199);
            assertThat(store.metrics().deletes()).isEqualTo(1);
        }
        try (Store again = LsmStore.open(options, disk.killProcess(), new Allocator())) {
            check(again);
        }
    }

    private static void check(Store store) {
        for (int i = 0; i < 49; i++) {
            assertThat(store.get(key(i))).isEqualTo(value(150 + i));
        }
        assertThat(store.get(key(49))).isNull();
    }

    /// Each range begins at some moment of a batch, as chance will have it; to index one takes a good part of them.
    @ParameterizedTest
    @EnumSource
    void aRangeThatBeginsWhileABatchIsWrittenSeesAllOfItOrNothing(WalMode wal) throws Exception {
        StoreOptions options = options(wal).toBuilder().memtableBytes(1 << 20).build();
        AtomicBoolean enough = new AtomicBoolean();
        try (Store store = LsmStore.open(options, new FaultyDisk(), new Allocator())) {
            store.begin(manyKeys(0)).await();
            Thread writer = Thread.ofPlatform().start(() -> {
                for (int number = 1; !enough.get(); number++) {
                    store.begin(manyKeys(number)).await();
                }
            });
            try {
                for (int range = 0; range < 200; range++) {
                    List<String> values = values(store);
                    assertThat(values).hasSize(MANY_KEYS);
                    assertThat(Set.copyOf(values)).as("of batches").hasSize(1);
                }
            } finally {
                enough.set(true);
                writer.join();
            }
        }
    }

    private static WriteBatch manyKeys(int number) {
        byte[] value = Records.bytes("batch " + number);
        return new WriteBatch(IntStream.range(0, MANY_KEYS)
                .mapToObj(i -> new WriteBatch.Write(key(i), value))
                .toList());
    }

    private static List<String> values(Store store) {
        List<String> values = new ArrayList<>();
        try (RangeCursor cursor = store.range(key(0), null)) {
            while (cursor.next()) {
                values.add(new String(cursor.value(), StandardCharsets.US_ASCII));
            }
        }
        return values;
    }

    /// With one record, as the format's page says.
    private static byte[] asVersion1(byte[] log) {
        ByteBuffer old = ByteBuffer.wrap(log.clone()).order(ByteOrder.LITTLE_ENDIAN);
        int place = (int) old.getLong(16) * 0x9E3779B1 + 64 / 8 * 0x85EBCA77;
        old.putInt(64, old.getInt(64) ^ place);
        old.putInt(8, 1).putInt(40, 0);
        return old.putInt(12, Checksum.of(old.slice(16, 48))).array();
    }

    @Test
    void aLogOfAnOlderVersionIsReadAndOneOfALaterVersionIsRefusedAndKept() throws Exception {
        FaultyDisk disk = new FaultyDisk();
        LsmStore store = LsmStore.open(options(WalMode.OS), disk, new Allocator());
        store.put(key(1), value(1));
        FaultyDisk killed = disk.killProcess();
        close(store);
        String log = killed.list(DIRECTORY).stream()
                .filter(name -> name.endsWith(".log"))
                .sorted()
                .findFirst()
                .orElseThrow();
        byte[] content = killed.content(log);
        content[8] = 4;
        killed.setContent(log, content);
        assertThatThrownBy(() -> LsmStore.open(options(WalMode.OS), killed, new Allocator()))
                .isInstanceOf(CorruptionException.class)
                .hasMessageContaining("unknown version of a write-ahead log")
                .hasMessageContaining("version=4");
        assertThat(killed.content(log)).isEqualTo(content);
        killed.setContent(log, asVersion1(content));
        try (Store old = LsmStore.open(options(WalMode.OS), killed, new Allocator())) {
            assertThat(old.get(key(1))).isEqualTo(value(1));
        }
    }

    /// Of tens of millions of short keys, whose records take up to sixteen times their bytes: neither its length nor
    /// places in its log would fit their numbers.
    @Test
    void aBatchThatNoLogCanHoldIsRefused() {
        long max = WriteAheadLogFormat.BATCH_BYTES_MAX;
        assertThat(LogSupply.logBytes(max)).isLessThan(Integer.MAX_VALUE);
        assertThat(WriteAheadLogFormat.recordBytes(StoreOptions.KEY_BYTES_MAX, StoreOptions.VALUE_BYTES_MAX))
                .as("what one write may hold")
                .isLessThan(max);
        WritePath.requireFitsLog(max);
        assertThatThrownBy(() -> WritePath.requireFitsLog(max + 1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("batch too long");
    }
}
