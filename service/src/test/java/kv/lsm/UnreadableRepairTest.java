package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.stream.Stream;
import kv.lsm.disk.BadPagesDisk;
import kv.lsm.disk.Disk;
import kv.lsm.disk.RealDisk;
import kv.lsm.log.WriteAheadLogFormat;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// `verify` and `repair` on a disk that cannot give some pages: what lies in them is lost and told of, and
/// nothing else.
class UnreadableRepairTest {
    private static final int PAGE = Allocator.PAGE_BYTES;
    private static final int KEYS = 500;
    private static final int KEY_BYTES = 8;
    /// with header and key 128 bytes, so that a record has no padding
    private static final int VALUE_BYTES = 106;
    private static final int BLOCK_BYTES = 512;

    private final Allocator allocator = new Allocator();
    private final List<String> said = new ArrayList<>();

    @TempDir
    private Path directory;

    private static byte[] key(int i) {
        return ByteBuffer.allocate(KEY_BYTES).putLong(i).array();
    }

    private static byte[] value(int i) {
        byte[] value = new byte[VALUE_BYTES];
        new SplittableRandom(i).nextBytes(value);
        return value;
    }

    private static StoreOptions options(Path where, Compression compression) {
        return StoreOptions.at(where).toBuilder()
                .wal(WalMode.OS)
                .blockBytes(BLOCK_BYTES)
                .memtableBytes(1 << 20)
                .compression(compression)
                .compaction(CompactionPolicyKind.NONE)
                .build();
    }

    /// One log with all records, as a process that was killed leaves it.
    private Path writtenLog() throws IOException {
        Path killed = directory.resolve("killed");
        Path original = directory.resolve("original");
        try (Store store = LsmStore.open(options(original, Compression.NONE))) {
            write(store);
            copy(original, killed);
        }
        return killed;
    }

    /// One table with all entries.
    private Path writtenTable(Compression compression) {
        Path original = directory.resolve("original");
        try (Store store = LsmStore.open(options(original, compression))) {
            write(store);
            store.administration().flush(() -> false);
        }
        return original;
    }

    private static void write(Store store) {
        for (int i = 0; i < KEYS; i++) {
            store.put(key(i), value(i));
        }
    }

    private static void copy(Path from, Path to) throws IOException {
        Files.createDirectory(to);
        try (Stream<Path> files = Files.list(from)) {
            for (Path file : files.toList()) {
                Files.copy(file, to.resolve(file.getFileName()));
            }
        }
    }

    /// The first file of a kind: further logs are empty.
    private static String file(Path store, String kind) throws IOException {
        try (Stream<Path> files = Files.list(store)) {
            return files.map(file -> file.getFileName().toString())
                    .filter(name -> name.endsWith(kind))
                    .min(String::compareTo)
                    .orElseThrow();
        }
    }

    /// Verifies and repairs a copy on that disk; what it holds then.
    private Map<Integer, byte[]> repaired(Path store, String name, Integer... badPages) throws IOException {
        Path copy = directory.resolve("bad-" + name + "-" + badPages[0] + "-" + badPages.length);
        copy(store, copy);
        Disk bad = new BadPagesDisk(new RealDisk(allocator), name, badPages);
        said.clear();
        try (ClosedStore closed = ClosedStore.open(copy, bad, allocator)) {
            assertThat(new StoreVerifier(closed, finding -> said.add(finding.toString())).run())
                    .as("problems of page %d of %s", badPages[0], name)
                    .isPositive();
            assertThat(said).anyMatch(line -> line.contains(name) && line.contains("cannot be read"));
            new StoreRepair(closed, said::add).run();
        }
        assertThat(allocator.allocatedBytes()).isZero();
        Map<Integer, byte[]> found = new TreeMap<>();
        try (ClosedStore closed = ClosedStore.open(copy)) {
            assertThat(new StoreVerifier(closed, finding -> {}).run()).isZero();
        }
        try (Store opened = LsmStore.open(options(copy, Compression.NONE));
                RangeCursor cursor = opened.range(new byte[0], null)) {
            while (cursor.next()) {
                found.put((int) ByteBuffer.wrap(cursor.key()).getLong(), cursor.value());
            }
        }
        found.forEach((key, value) -> assertThat(value).isEqualTo(value(key)));
        return found;
    }

    @Test
    void ofALogWithOnePageThatCannotBeReadAllOtherRecordsAreKept() throws IOException {
        Path store = writtenLog();
        String log = file(store, ".log");
        long recordBytes = WriteAheadLogFormat.recordBytes(KEY_BYTES, VALUE_BYTES);
        int pages = (int) (WriteAheadLogFormat.HEADER_BYTES + KEYS * recordBytes - 1) / PAGE + 1;
        assertThat(pages).isGreaterThan(10);
        for (int page = 0; page <= pages; page++) {
            List<Integer> wanted = new ArrayList<>();
            for (int i = 0; i < KEYS; i++) {
                long start = WriteAheadLogFormat.HEADER_BYTES + i * recordBytes;
                if (start >= (page + 1L) * PAGE || start + recordBytes <= (long) page * PAGE) {
                    wanted.add(i);
                }
            }
            assertThat(repaired(store, log, page).keySet()).as("page %d", page).containsExactlyElementsOf(wanted);
            assertThat(said).anyMatch(line -> line.startsWith("lost: " + log));
        }
    }

    @ParameterizedTest
    @EnumSource
    void ofATableWithPagesThatCannotBeReadAllOtherBlocksAreKept(Compression compression) throws IOException {
        Path store = writtenTable(compression);
        String table = file(store, ".table");
        int last = (int) ((Files.size(store.resolve(table)) - 1) / PAGE);
        int dataPages = KEYS * (KEY_BYTES + VALUE_BYTES) / PAGE;
        int entriesOfABlock = BLOCK_BYTES / (KEY_BYTES + VALUE_BYTES) + 1;
        int lostMax = entriesOfABlock * (PAGE / BLOCK_BYTES + 2);
        for (int page = 0; page < dataPages; page += 3) {
            for (Integer[] bad : new Integer[][] {{page}, {page, last}}) { // the footer is in the last one
                assertThat(repaired(store, table, bad).size())
                        .as("entries kept without %s of %d pages", List.of(bad), last + 1)
                        .isBetween(KEYS - (bad.length == 1 ? lostMax : lostMax + entriesOfABlock), KEYS - 1);
                assertThat(said).anyMatch(line -> line.startsWith("lost: " + table));
            }
        }
        assertThat(repaired(store, table, last).size())
                .as("entries kept without the footer")
                .isGreaterThanOrEqualTo(KEYS - lostMax);
    }

    @Test
    void withoutAManifestThatCanBeReadNothingIsLost() throws IOException {
        Path store = writtenTable(Compression.NONE);
        assertThat(repaired(store, FileNames.MANIFEST, 0)).hasSize(KEYS);
    }
}
