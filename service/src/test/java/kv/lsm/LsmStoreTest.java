package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.disk.RealDisk;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LsmStoreTest {
    @TempDir
    Path directory;

    private StoreOptions.Builder options() {
        return StoreOptions.at(directory).toBuilder().memtableBytes(64 << 10);
    }

    private static byte[] bytes(String text) {
        return Records.bytes(text);
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
            assertThat(directory.resolve("notes.txt"))
                    .as("what is not ours is left alone")
                    .exists();
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

    /// Each edit tells the first and the last key of its tables.
    @Test
    void aManifestThatHasGrownIsReplacedByOneThatTellsTheSame() {
        FaultyDisk disk = new FaultyDisk();
        StoreOptions options = StoreState.options(WalMode.ALWAYS);
        List<byte[]> longKeys = Stream.of(1, 2, 3)
                .map(i -> new byte[StoreOptions.KEY_BYTES_MAX - i])
                .toList();
        int writes = 0;
        try (Store store = LsmStore.open(options, disk, new Allocator())) {
            long bytes;
            long bytesBefore = 0;
            while ((bytes = disk.content(FileNames.MANIFEST).length) >= bytesBefore) {
                assertThat(bytes).isLessThan(5 << 20);
                bytesBefore = bytes;
                store.put(longKeys.get(writes % longKeys.size()), bytes("write " + writes));
                store.administration().flush(() -> false);
                writes++;
            }
        }
        try (Store store = LsmStore.open(options, disk.losePower(new SplittableRandom(1)), new Allocator())) {
            for (int write = writes - longKeys.size(); write < writes; write++) {
                assertThat(store.get(longKeys.get(write % longKeys.size()))).isEqualTo(bytes("write " + write));
            }
        }
    }

    @Test
    void nativeMemoryIsGivenBackWhenTheStoreAndItsCursorsAreClosed() {
        for (Compression compression : Compression.values()) {
            nativeMemoryIsGivenBack(ReadMode.MMAP, compression);
            nativeMemoryIsGivenBack(ReadMode.PREAD, compression);
        }
    }

    private void nativeMemoryIsGivenBack(ReadMode read, Compression compression) {
        Allocator allocator = new Allocator();
        StoreOptions options =
                options().read(read).compression(compression).level0(2, 20, 40).build();
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

    @Test
    void aTableInWhichKeysAreFoundIsSoonReadWithoutItsFilter() {
        StoreOptions options =
                options().wal(WalMode.NONE).memtableBytes(1 << 20).build();
        try (Store store = LsmStore.open(options)) {
            for (int i = 0; i < 2_000; i++) {
                store.put(bytes("key" + i), new byte[100]);
            }
        }
        try (Store store = LsmStore.open(options)) {
            for (int i = 0; i < 2_000; i++) {
                assertThat(store.get(bytes("key" + i))).hasSize(100);
            }
            long asked = store.metrics().bloomChecks();
            assertThat(asked).isBetween(1L, 1_500L);
            for (int i = 0; i < 500; i++) {
                assertThat(store.get(bytes("key" + i))).hasSize(100);
            }
            assertThat(store.metrics().bloomChecks()).isEqualTo(asked);
        }
    }

    @Test
    void openTablesAreThoseOfAllLevelsUntilTheStoreIsClosed() {
        Store store =
                LsmStore.open(options().compaction(CompactionPolicyKind.NONE).build());
        try (store) {
            for (int i = 0; i < 3_000; i++) {
                store.put(bytes("key" + i), new byte[100]);
            }
            store.administration().flush(() -> false);
            int tables = store.metrics().levels().stream()
                    .mapToInt(StoreMetrics.Level::tables)
                    .sum();
            assertThat(store.openTables()).isEqualTo(tables).isGreaterThan(1);
        }
        assertThat(store.openTables()).isZero();
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
