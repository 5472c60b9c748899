package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.disk.RealDisk;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class LsmStoreTest {
    @TempDir
    Path directory;

    private StoreOptions.Builder options() {
        return StoreOptions.at(directory).toBuilder().memtableBytes(64 << 10);
    }

    private static byte[] bytes(String text) {
        return Records.bytes(text);
    }

    @ParameterizedTest
    @EnumSource
    void whatWasClosedInOrderIsThereAfterwardsInEveryLogMode(WalMode wal) {
        try (Store store = LsmStore.open(options().wal(wal).build())) {
            store.put(bytes("a"), bytes("1"));
            store.put(bytes("b"), bytes("2"));
            store.put(bytes("a"), bytes("3"));
            store.delete(bytes("b"));
            store.put(bytes("empty"), new byte[0]);
        }
        try (Store store = LsmStore.open(options().wal(wal).build())) {
            assertThat(store.get(bytes("a"))).isEqualTo(bytes("3"));
            assertThat(store.get(bytes("b"))).isNull();
            assertThat(store.get(bytes("empty"))).isEmpty();
            assertThat(store.get(bytes("c"))).isNull();
            assertThat(store.metrics().recovery().droppedBytes()).isZero();
        }
    }

    @Test
    void valuesLargerThanAMemtableAndKeysOfTheGreatestLengthAreKept() {
        byte[] longKey = new byte[StoreOptions.KEY_BYTES_MAX];
        longKey[0] = 'k';
        byte[] large = new byte[3 << 20];
        large[large.length - 1] = 7;
        for (WalMode wal : WalMode.values()) {
            StoreOptions options = options().wal(wal).build();
            try (Store store = LsmStore.open(options)) {
                store.put(bytes("small"), bytes("x"));
                store.put(bytes("large-" + wal), large);
                store.put(longKey, large);
                store.put(bytes("after"), bytes("y"));
                assertThat(store.get(bytes("large-" + wal))).isEqualTo(large);
            }
            try (Store store = LsmStore.open(options)) {
                assertThat(store.get(bytes("large-" + wal))).isEqualTo(large);
                assertThat(store.get(longKey)).isEqualTo(large);
                assertThat(store.get(bytes("small"))).isEqualTo(bytes("x"));
                assertThat(store.get(bytes("after"))).isEqualTo(bytes("y"));
            }
        }
    }

    @Test
    void keysAndValuesOutOfRangeAreRefused() {
        try (Store store = LsmStore.open(options().build())) {
            assertThatThrownBy(() -> store.get(new byte[0]))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("bytes=0, min=1");
            assertThatThrownBy(() -> store.put(new byte[StoreOptions.KEY_BYTES_MAX + 1], new byte[0]))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> store.put(bytes("k"), null)).isInstanceOf(NullPointerException.class);
        }
    }

    @Test
    void twoStoresCannotShareADirectory() {
        try (Store store = LsmStore.open(options().build())) {
            assertThatThrownBy(() -> LsmStore.open(options().build()))
                    .isInstanceOf(StoreLockedException.class)
                    .hasMessageContaining("directory=" + directory);
            store.put(bytes("a"), bytes("1"));
        }
        LsmStore.open(options().build()).close();
    }

    @Test
    void aClosedStoreSaysSoAndSoDoesItsCursor() {
        Store store = LsmStore.open(options().build());
        store.put(bytes("a"), bytes("1"));
        store.put(bytes("b"), bytes("2"));
        RangeCursor cursor = store.range(bytes("a"), null);
        assertThat(cursor.next()).isTrue();
        store.close();
        store.close();
        assertThat(store.isWritable()).isFalse();
        assertThatThrownBy(cursor::next).isInstanceOf(StoreClosedException.class);
        cursor.close();
        cursor.close();
        assertThatThrownBy(() -> store.get(bytes("a"))).isInstanceOf(StoreClosedException.class);
        assertThatThrownBy(() -> store.put(bytes("a"), bytes("1"))).isInstanceOf(StoreClosedException.class);
        assertThatThrownBy(() -> store.range(bytes("a"), null)).isInstanceOf(StoreClosedException.class);
        assertThatThrownBy(store::metrics).isInstanceOf(StoreClosedException.class);
    }

    @Test
    void rangesAreHalfOpenAndMayBeEmpty() {
        try (Store store = LsmStore.open(options().build())) {
            for (String key : List.of("a", "b", "c", "d")) {
                store.put(bytes(key), bytes(key));
            }
            assertThat(keys(store, "b", "d")).containsExactly("b", "c");
            assertThat(keys(store, "bb", null)).containsExactly("c", "d");
            assertThat(keys(store, "d", "b")).isEmpty();
            assertThat(keys(store, "b", "b")).isEmpty();
            assertThat(keys(store, "e", null)).isEmpty();
        }
    }

    private static List<String> keys(Store store, String start, String endOrNull) {
        List<String> keys = new ArrayList<>();
        try (RangeCursor cursor = store.range(bytes(start), endOrNull == null ? null : bytes(endOrNull))) {
            while (cursor.next()) {
                keys.add(new String(cursor.key()));
            }
            assertThat(cursor.next()).isFalse();
        }
        return keys;
    }

    @Test
    void filesThatBelongToNothingAreRemovedOnOpening() throws IOException {
        try (Store store = LsmStore.open(options().wal(WalMode.NONE).build())) {
            store.put(bytes("a"), bytes("1"));
        }
        for (String name : List.of("000900.table", "000901.table.tmp", "MANIFEST.tmp")) {
            Files.write(directory.resolve(name), new byte[100]);
        }
        Files.write(directory.resolve("notes.txt"), new byte[1]);
        try (Store store = LsmStore.open(options().build())) {
            assertThat(store.get(bytes("a"))).isEqualTo(bytes("1"));
            assertThat(directory.resolve("000900.table")).doesNotExist();
            assertThat(directory.resolve("000901.table.tmp")).doesNotExist();
            assertThat(directory.resolve("MANIFEST.tmp")).doesNotExist();
            assertThat(directory.resolve("notes.txt")).as("what is not ours is left alone").exists();
        }
    }

    @Test
    void compactionDeletesTheTablesItReplacedAndTombstonesVanish() throws Exception {
        StoreOptions options = options().level0(2, 20, 40).wal(WalMode.NONE).build();
        for (int round = 0; round < 2; round++) {
            try (Store store = LsmStore.open(options)) {
                for (int i = 0; i < 500; i++) {
                    if (round == 0) {
                        store.put(bytes("key" + i), new byte[50]);
                    } else {
                        store.delete(bytes("key" + i));
                    }
                }
            }
        }
        try (Store store = LsmStore.open(options)) {
            while (!store.metrics().levels().isEmpty()) {
                Thread.sleep(1);
            }
            assertThat(keys(store, "a", null)).isEmpty();
        }
        try (var files = Files.list(directory)) {
            assertThat(files.filter(file -> file.toString().endsWith(".table"))).isEmpty();
        }
    }

    /// An interrupted thread must not close a file under the others, as Java's channels do.
    @ParameterizedTest
    @EnumSource
    void interruptedCallersAreServedAndStayInterrupted(ReadMode read) throws Exception {
        StoreOptions options = options().wal(WalMode.ALWAYS).read(read).build();
        try (Store store = LsmStore.open(options)) {
            for (int i = 0; i < 600; i++) { // some flushed, some not
                if (i % 50 == 0) {
                    Thread.currentThread().interrupt();
                }
                store.put(bytes("key" + i % 500), new byte[200]);
                assertThat(Thread.interrupted()).isEqualTo(i % 50 == 0);
            }
            AtomicBoolean done = new AtomicBoolean();
            Thread victim = Thread.ofPlatform().start(() -> {
                while (!done.get()) {
                    for (int i = 0; i < 500; i++) {
                        assertThat(store.get(bytes("key" + i))).hasSize(200);
                    }
                }
            });
            for (int i = 0; i < 200; i++) {
                victim.interrupt();
                assertThat(store.get(bytes("key" + i))).hasSize(200);
            }
            done.set(true);
            victim.join();
            assertThat(store.isWritable()).isTrue();
        }
    }

    /// A value larger than a memtable needs a log of its own, made by the writer.
    @ParameterizedTest
    @EnumSource
    void aWriterThatIsInterruptedWhileItStartsALogDoesNotStopTheStore(WalMode wal) {
        try (Store store = LsmStore.open(options().wal(wal).build())) {
            for (int i = 0; i < 5; i++) {
                Thread.currentThread().interrupt();
                store.put(bytes("large" + i), new byte[200 << 10]);
                assertThat(Thread.interrupted()).isTrue();
            }
            assertThat(store.isWritable()).isTrue();
            assertThat(store.get(bytes("large0"))).hasSize(200 << 10);
        }
    }

    @Test
    void nativeMemoryIsGivenBackWhenTheStoreAndItsCursorsAreClosed() {
        for (ReadMode read : ReadMode.values()) {
            Allocator allocator = new Allocator();
            StoreOptions options =
                    options().read(read).compression(Compression.LZ4).level0(2, 20, 40).build();
            LsmStore store = LsmStore.open(options, new RealDisk(allocator), allocator);
            for (int i = 0; i < 5_000; i++) {
                store.put(bytes("key" + i % 1_000), new byte[100]);
            }
            RangeCursor cursor = store.range(bytes("k"), null);
            cursor.next();
            store.get(bytes("key1"));
            assertThat(store.metrics().openCursors()).isEqualTo(1);
            assertThat(store.metrics().offHeapBytes()).isPositive();
            store.close();
            cursor.close();
            assertThat(allocator.allocatedBytes()).isZero();
        }
    }

    @Test
    void anIntervalSyncMakesWritesDurableWithoutAClose() throws Exception {
        FaultyDisk disk = new FaultyDisk();
        LsmStore store = LsmStore.open(
                options().wal(WalMode.INTERVAL).walInterval(Duration.ofMillis(1)).build(), disk, new Allocator());
        store.put(bytes("a"), bytes("1"));
        while (store.metrics().walSyncs() == 0) {
            Thread.sleep(1);
        }
        FaultyDisk after = disk.losePower(new SplittableRandom(1));
        try (Store again = LsmStore.open(options().build(), after, new Allocator())) {
            assertThat(again.get(bytes("a"))).isEqualTo(bytes("1"));
        }
        assertThatThrownBy(store::close).isInstanceOf(StoreFailedException.class);
    }

    @Test
    void waitingWritersShareASync() throws Exception {
        int threads = 8;
        int each = 50;
        try (Store store = LsmStore.open(options().memtableBytes(4 << 20).wal(WalMode.ALWAYS).build())) {
            List<Thread> writers = new ArrayList<>();
            for (int t = 0; t < threads; t++) {
                String prefix = "t" + t + "-";
                writers.add(Thread.ofVirtual().start(() -> {
                    for (int i = 0; i < each; i++) {
                        store.put(bytes(prefix + i), bytes("v"));
                        assertThat(store.get(bytes(prefix + i))).isEqualTo(bytes("v"));
                    }
                }));
            }
            for (Thread writer : writers) {
                writer.join();
            }
            assertThat(store.metrics().puts()).isEqualTo(threads * each);
            assertThat(store.metrics().walSyncs()).isLessThan(threads * each * 3L / 4);
            assertThat(keys(store, "t", null)).hasSize(threads * each);
        }
    }

    @Test
    void countersTellWhatHappened() {
        try (Store store = LsmStore.open(options().wal(WalMode.OS).build())) {
            for (int i = 0; i < 3_000; i++) {
                store.put(bytes("key" + i), new byte[100]);
            }
            store.delete(bytes("key1"));
            store.get(bytes("key2"));
            store.get(bytes("absent"));
            store.range(bytes("a"), null).close();
            StoreMetrics metrics = store.metrics();
            assertThat(metrics.puts()).isEqualTo(3_000);
            assertThat(metrics.deletes()).isEqualTo(1);
            assertThat(metrics.gets()).isEqualTo(2);
            assertThat(metrics.ranges()).isEqualTo(1);
            assertThat(metrics.userBytes()).isBetween(300_000L, 330_000L);
            assertThat(metrics.walBytes()).isGreaterThan(metrics.userBytes());
            assertThat(metrics.flushes()).isPositive();
            assertThat(metrics.flushBytes()).isPositive();
            assertThat(metrics.memtableBytes()).isPositive();
            assertThat(metrics.mappedBytes()).isPositive();
            assertThat(metrics.bloomChecks()).isGreaterThanOrEqualTo(metrics.bloomNegatives());
            assertThat(metrics.stalls()).containsOnlyKeys(StallCause.values());
        }
    }
}
