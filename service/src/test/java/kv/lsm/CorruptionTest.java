package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/// A byte of a file changes while nobody looks: the store says so or answers rightly; it never gives a wrong
/// answer.
class CorruptionTest {
    private static final Path DIRECTORY = Path.of("/faulty");
    private static final int KEYS = 24;

    private final Model model = new Model();

    private static byte[] key(int i) {
        return Records.bytes("key-%05d".formatted(i));
    }

    private static StoreOptions options(WalMode wal, ReadMode read, Compression compression) {
        return StoreOptions.at(DIRECTORY).toBuilder()
                .wal(wal)
                .read(read)
                .compression(compression)
                .blockBytes(256)
                .memtableBytes(16 << 10)
                .compaction(CompactionPolicyKind.NONE)
                .build();
    }

    /// A disk with one table, or with one log that was synced.
    private FaultyDisk written(StoreOptions options) {
        FaultyDisk disk = new FaultyDisk();
        SplittableRandom random = new SplittableRandom(1);
        try (Store store = LsmStore.open(options, disk, new Allocator())) {
            for (int i = 0; i < KEYS; i++) {
                byte[] value = new byte[random.nextInt(120)];
                if (i % 2 == 0) {
                    random.nextBytes(value);
                }
                store.put(key(i), value);
                model.put(key(i), value);
            }
            store.delete(key(3));
            model.delete(key(3));
        }
        return disk;
    }

    private static String only(FaultyDisk disk, String ending) throws Exception {
        return disk.list(DIRECTORY).stream()
                .filter(name -> name.endsWith(ending))
                .findFirst()
                .orElseThrow();
    }

    @TestFactory
    Stream<DynamicTest> aChangedByteInATableIsFoundOrHarmless() {
        return Stream.of(ReadMode.values())
                .flatMap(read -> Stream.of(Compression.values())
                        .map(compression -> DynamicTest.dynamicTest(read + " " + compression, () -> {
                            StoreOptions options = options(WalMode.NONE, read, compression);
                            FaultyDisk disk = written(options);
                            assertThat(changeEveryByte(disk, only(disk, ".table"), options))
                                    .isGreaterThan(0.6);
                        })));
    }

    @Test
    void aChangedByteInADurableLogIsFoundOrHarmless() throws Exception {
        StoreOptions options = options(WalMode.OS, ReadMode.MMAP, Compression.NONE);
        FaultyDisk disk = written(options);
        changeEveryByte(disk, only(disk, ".log"), options);
    }

    @Test
    void aChangedByteInTheManifestIsFoundOrHarmless() throws Exception {
        StoreOptions options = options(WalMode.NONE, ReadMode.MMAP, Compression.NONE);
        FaultyDisk disk = written(options);
        changeEveryByte(disk, "MANIFEST", options);
    }

    /// Opening it again would change nothing, and whoever reads the message is to know it.
    @Test
    void aCompactionThatMeetsADamagedBlockEndsWritingAndNamesTheToolThatHelps() throws Exception {
        StoreOptions options = options(WalMode.NONE, ReadMode.MMAP, Compression.NONE);
        FaultyDisk disk = written(options);
        disk.flipBits(only(disk, ".table"), 20, 1);
        StoreOptions compacting = options.toBuilder()
                .compaction(CompactionPolicyKind.LEVELED)
                .level0(2, 16, 32)
                .build();
        for (int opening = 0; opening < 2; opening++) {
            try (LsmStore store = LsmStore.open(compacting, disk, new Allocator())) {
                assertThatThrownBy(() -> writeUntilItFails(store))
                        .isInstanceOf(StoreFailedException.class)
                        .hasMessageContaining("a compaction failed: corrupt file: ")
                        .hasMessageContaining("kv.Tool repair")
                        .hasMessageNotContaining("open the store again");
            }
        }
    }

    private static void writeUntilItFails(Store store) throws InterruptedException {
        for (int written = 0; written < 20_000; written++) {
            store.put(key(written % KEYS), new byte[100]);
            Thread.sleep(written % 100 == 0 ? 1 : 0);
        }
    }

    /// The share of bytes whose change was found.
    private double changeEveryByte(FaultyDisk disk, String name, StoreOptions options) {
        byte[] content = disk.content(name);
        SplittableRandom random = new SplittableRandom(2);
        int found = 0;
        int used = 0;
        for (int offset = 0; offset < content.length; offset++) {
            used = content[offset] != 0 ? offset + 1 : used;
        }
        for (int offset = 0; offset < used; offset++) {
            FaultyDisk copy = disk.killProcess();
            copy.flipBits(name, offset, random.nextInt(1, 256));
            try (Store store = LsmStore.open(options, copy, new Allocator())) {
                for (int i = 0; i < KEYS; i += 3) {
                    model.checkGet(store, key(i));
                }
                model.checkAll(store);
            } catch (CorruptionException e) {
                assertThat(e.file()).isNotNull();
                assertThat(e.byteOffset()).isBetween(0L, (long) content.length);
                found++;
            }
        }
        return (double) found / used;
    }

    @Test
    void aMissingFileIsNamed() throws Exception {
        StoreOptions options = options(WalMode.NONE, ReadMode.MMAP, Compression.NONE);
        FaultyDisk disk = written(options).killProcess();
        String table = only(disk, ".table");
        disk.remove(table);
        assertThat(catchOpening(options, disk))
                .isInstanceOf(CorruptionException.class)
                .hasMessageContaining("missing")
                .hasMessageContaining(table);
    }

    /// As a backup that was put back under wrong names: of the same size and with as many entries.
    @Test
    void aTableInThePlaceOfAnotherIsRefused() throws Exception {
        StoreOptions options = options(WalMode.NONE, ReadMode.MMAP, Compression.NONE);
        FaultyDisk disk = new FaultyDisk();
        for (String first : List.of("a", "b")) {
            try (Store store = LsmStore.open(options, disk, new Allocator())) {
                store.put(Records.bytes(first + "1"), Records.bytes("value"));
                store.put(Records.bytes(first + "2"), Records.bytes("value"));
            }
        }
        disk = disk.killProcess();
        List<String> tables = disk.list(DIRECTORY).stream()
                .filter(name -> name.endsWith(".table"))
                .sorted()
                .toList();
        disk.setContent(tables.getLast(), disk.content(tables.getFirst()));
        assertThat(catchOpening(options, disk))
                .isInstanceOf(CorruptionException.class)
                .hasMessageContaining("not the table that the manifest names: first key: manifest=b1, file=a1")
                .hasMessageContaining(tables.getLast());
    }

    @Test
    void aMissingLogThatTheManifestNamesIsNamed() throws Exception {
        StoreOptions options = options(WalMode.OS, ReadMode.MMAP, Compression.NONE);
        FaultyDisk disk = written(options).killProcess();
        String log = only(disk, ".log");
        disk.remove(log);
        assertThat(catchOpening(options, disk)).hasMessageContaining("missing").hasMessageContaining(log);
    }

    @Test
    void filesOfAnotherKindOrVersionAreRefused() throws Exception {
        StoreOptions options = options(WalMode.NONE, ReadMode.MMAP, Compression.NONE);
        FaultyDisk disk = written(options).killProcess();
        String tableName = only(disk, ".table");
        byte[] table = disk.content(tableName);
        byte[] older = table.clone();
        older[older.length - 16] = 1;
        disk.setContent(tableName, older);
        assertThat(catchOpening(options, disk))
                .hasMessageContaining("unknown table version")
                .hasMessageContaining("open it with the release that wrote it")
                .hasMessageContaining(tableName);
        disk.setContent(tableName, table);
        byte[] manifest = disk.content("MANIFEST");
        manifest[8] = 2;
        disk.setContent("MANIFEST", manifest);
        assertThat(catchOpening(options, disk)).hasMessageContaining("unknown manifest version: version=2");
        disk.setContent("MANIFEST", Records.bytes("something else entirely"));
        assertThat(catchOpening(options, disk)).hasMessageContaining("this is not a manifest");
        disk.setContent("MANIFEST", new byte[0]);
        assertThat(catchOpening(options, disk)).hasMessageContaining("this is not a manifest");
    }

    private static Throwable catchOpening(StoreOptions options, FaultyDisk disk) {
        Allocator allocator = new Allocator();
        try {
            LsmStore.open(options, disk, allocator).close();
            return null;
        } catch (StoreException e) {
            assertThat(allocator.allocatedBytes())
                    .as("memory after a failed opening")
                    .isZero();
            return e;
        }
    }
}
