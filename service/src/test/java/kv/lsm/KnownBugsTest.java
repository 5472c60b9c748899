package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicIntegerArray;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The bugs that stores of this kind have had, each by name.
class KnownBugsTest {
    private static final Path FAULTY = Path.of("/faulty");

    @TempDir
    Path directory;

    private static byte[] key(int i) {
        return ByteBuffer.allocate(4).putInt(i).array();
    }

    private static int number(byte[] value) {
        return ByteBuffer.wrap(value).getInt();
    }

    private StoreOptions.Builder small() {
        return StoreOptions.at(directory).toBuilder()
                .memtableBytes(32 << 10)
                .tableBytes(16 << 10)
                .level1Bytes(64 << 10)
                .level0(2, 20, 40);
    }

    @Test
    void aKeyIsNotMissingWhileItsMemtableIsBeingFlushed() throws Exception {
        GatedDisk disk = new GatedDisk(new FaultyDisk());
        try (Store store = LsmStore.open(small().wal(WalMode.OS).build(), disk, new Allocator());
                GatedDisk.Gates gates = disk.openedAtTheEnd()) {
            disk.hold(GatedDisk.FLUSH);
            int keys = 0;
            while (store.metrics().frozenMemtables() == 0) {
                store.put(key(keys), new byte[100]);
                keys++;
            }
            disk.awaitHeld();
            for (int i = 0; i < keys; i++) {
                assertThat(store.get(key(i)))
                        .as("key %d while its memtable is frozen", i)
                        .hasSize(100);
            }
            disk.letGo(GatedDisk.FLUSH);
            while (store.metrics().flushes() == 0) {
                assertThat(store.get(key(keys / 2))).as("while the flush ends").hasSize(100);
            }
            for (int i = 0; i < keys; i++) {
                assertThat(store.get(key(i))).as("key %d from the table", i).hasSize(100);
            }
        }
    }

    @Test
    void aCompactionDoesNotPublishAnOldStateOverANewerMemtable() throws Exception {
        GatedDisk disk = new GatedDisk(new FaultyDisk());
        try (Store store = LsmStore.open(
                        small().wal(WalMode.OS).frozenMemtablesMax(8).build(), disk, new Allocator());
                GatedDisk.Gates gates = disk.openedAtTheEnd()) {
            disk.hold(GatedDisk.COMPACTION);
            int round = 0;
            while (level0Runs(store) < 2) {
                putAll(store, round++);
            }
            disk.awaitHeld();
            // while the compaction of the old tables stands still, newer values are flushed and others are in
            // memory
            long flushes = store.metrics().flushes();
            while (store.metrics().flushes() < flushes + 2) {
                putAll(store, round++);
            }
            disk.letGo(GatedDisk.COMPACTION);
            while (store.metrics().compactions() == 0) {
                checkAll(store, round - 1);
            }
            checkAll(store, round - 1);
        }
    }

    private static int level0Runs(Store store) {
        return store.metrics().levels().stream()
                .filter(level -> level.level() == 0)
                .mapToInt(StoreMetrics.Level::runs)
                .sum();
    }

    private static void putAll(Store store, int round) {
        for (int i = 0; i < 50; i++) {
            store.put(key(i), ByteBuffer.allocate(100).putInt(round).array());
        }
    }

    private static void checkAll(Store store, int round) {
        for (int i = 0; i < 50; i++) {
            assertThat(number(store.get(key(i))))
                    .as("round that wrote key %d", i)
                    .isEqualTo(round);
        }
    }

    /// Writers of their own keys, readers of all: what was acknowledged before a read began is the least it may
    /// see.
    @Test
    void noWriteGoesIntoAMemtableThatWasFlushedAlready() throws Exception {
        int keys = 64;
        int writers = 3;
        AtomicIntegerArray acknowledged = new AtomicIntegerArray(keys);
        AtomicBoolean done = new AtomicBoolean();
        List<Future<?>> work = new ArrayList<>();
        try (Store store = LsmStore.open(small().wal(WalMode.NONE).build());
                ExecutorService threads = Executors.newCachedThreadPool()) {
            for (int w = 0; w < writers; w++) {
                int writer = w;
                work.add(threads.submit(() -> {
                    for (int n = 1; n <= 400; n++) {
                        for (int key = writer; key < keys; key += writers) {
                            store.put(
                                    key(key), ByteBuffer.allocate(60).putInt(n).array());
                            acknowledged.set(key, n);
                        }
                    }
                }));
            }
            Future<?> reader = threads.submit(() -> {
                SplittableRandom random = new SplittableRandom(1);
                while (!done.get()) {
                    int key = random.nextInt(keys);
                    int least = acknowledged.get(key);
                    byte[] value = store.get(key(key));
                    assertThat(value == null ? 0 : number(value))
                            .as("key %d", key)
                            .isGreaterThanOrEqualTo(least);
                }
            });
            for (Future<?> writer : work) {
                writer.get();
            }
            done.set(true);
            reader.get();
        }
        try (Store store = LsmStore.open(small().build())) {
            for (int key = 0; key < keys; key++) {
                assertThat(number(store.get(key(key))))
                        .as("key %d after closing without a log", key)
                        .isEqualTo(400);
            }
        }
    }

    @Test
    void theMemtableThresholdDecidesTheSizeOfTheTable() {
        int memtableBytes = 512 << 10;
        try (Store store = LsmStore.open(StoreOptions.at(directory).toBuilder()
                .memtableBytes(memtableBytes)
                .compaction(CompactionPolicyKind.NONE)
                .build())) {
            for (int i = 0; store.metrics().flushes() < 5; i++) {
                store.put(key(i * 31), new byte[200]);
            }
            StoreMetrics.Level level0 = store.metrics().levels().getFirst();
            assertThat(level0.tables()).isEqualTo(level0.runs());
            assertThat(level0.bytes() / level0.tables()).isBetween(memtableBytes * 6L / 10, (long) memtableBytes);
        }
    }

    @Test
    void keysAreComparedAsUnsignedBytes() {
        byte[][] ascending = {
            {0}, {0, 0}, {0, 1}, {1}, {0x7F}, {0x7F, (byte) 0xFF}, {(byte) 0x80}, {(byte) 0xFF}, {(byte) 0xFF, 0}
        };
        for (boolean inTables : new boolean[] {false, true}) {
            Path own = directory.resolve("tables-" + inTables);
            // closing without a log writes tables, closing with one keeps the memtable
            StoreOptions options = StoreOptions.at(own).toBuilder()
                    .wal(inTables ? WalMode.NONE : WalMode.OS)
                    .build();
            try (Store store = LsmStore.open(options)) {
                for (int i : new int[] {8, 2, 5, 0, 7, 3, 6, 1, 4}) {
                    store.put(ascending[i], new byte[0]);
                }
            }
            try (Store store = LsmStore.open(options);
                    RangeCursor cursor = store.range(new byte[0], null)) {
                List<byte[]> found = new ArrayList<>();
                while (cursor.next()) {
                    found.add(cursor.key());
                }
                assertThat(found.toArray(byte[][]::new)).isDeepEqualTo(ascending);
            }
        }
    }

    @Test
    void theDirectoryIsSyncedBetweenANewNameAndItsUse() {
        FaultyDisk disk = new FaultyDisk();
        List<String> calls = new ArrayList<>();
        disk.setFaults((count, what) -> {
            if (!what.startsWith("close ")) {
                calls.add(what);
            }
            return false;
        });
        try (Store store = LsmStore.open(
                StoreOptions.at(FAULTY).toBuilder().wal(WalMode.NONE).build(), disk, new Allocator())) {
            store.put(key(1), key(1));
        }
        int renamed = calls.lastIndexOf(calls.stream()
                .filter(call -> call.matches("rename .*table"))
                .findFirst()
                .orElseThrow());
        assertThat(calls.subList(renamed - 1, renamed + 3))
                .containsExactly(
                        calls.get(renamed).replace("rename", "sync") + FileNames.TEMPORARY,
                        calls.get(renamed),
                        "open directory",
                        "sync directory");
        assertThat(calls.subList(renamed + 3, calls.size()))
                .as("then the manifest")
                .containsSubsequence("write MANIFEST.tmp", "sync MANIFEST.tmp");
    }
}
