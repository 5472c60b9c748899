package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import kv.Eventually;
import kv.lsm.disk.ForwardingDisk;
import kv.lsm.disk.LogFile;
import kv.lsm.disk.ReadFile;
import kv.lsm.disk.RealDisk;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The disk cannot give a page of a mapped table: who needs it is told, and the process goes on. A file that was
/// cut short under its mapping gives the same signal as a page that cannot be read.
class UnreadablePageTest {
    private static final int KEYS = 400;

    @TempDir
    Path directory;

    private static byte[] key(int number) {
        return ByteBuffer.allocate(4).putInt(number).array();
    }

    private StoreOptions options(Compression compression) {
        return StoreOptions.at(directory).toBuilder()
                .wal(WalMode.OS)
                .read(ReadMode.MMAP)
                .compression(compression)
                .compaction(CompactionPolicyKind.NONE)
                .tableMemoryBytes(1 << 30) // nothing is read by calls for fear that it is not in memory
                .build();
    }

    private List<Path> tables() throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> file.toString().endsWith(".table")).toList();
        }
    }

    private void cutTables() throws IOException {
        assertThat(tables()).isNotEmpty();
        for (Path table : tables()) {
            try (FileChannel channel = FileChannel.open(table, StandardOpenOption.WRITE)) {
                channel.truncate(0);
            }
        }
    }

    private static void assertCannotBeRead(ThrowingCallable read) {
        assertThatThrownBy(read).isInstanceOf(StoreException.class).hasMessageContaining("could not be read");
    }

    @ParameterizedTest
    @EnumSource
    void aPageThatCannotBeReadIsAnErrorOfItsReadAlone(Compression compression) throws Exception {
        try (LsmStore store = (LsmStore) LsmStore.open(options(compression))) {
            for (int i = 0; i < KEYS; i++) {
                store.put(key(i), new byte[200]);
            }
            store.administration().flush(() -> false);
        }
        try (LsmStore store = (LsmStore) LsmStore.open(options(compression))) {
            store.put(key(KEYS), key(7));
            byte[] seen = store.get(key(0));
            assertThat(seen).as("a block that was checked before").hasSize(200);
            cutTables();
            for (int round = 0; round < 50; round++) { // also when the code was compiled
                for (int i = 0; i < KEYS; i++) {
                    byte[] key = key(i);
                    assertCannotBeRead(() -> store.get(key));
                }
                assertCannotBeRead(() -> {
                    try (RangeCursor cursor = store.range(key(0), null)) {
                        while (cursor.next()) {
                            cursor.value();
                        }
                    }
                });
            }
            assertThat(store.metrics().openCursors()).isZero();
            assertThat(store.get(key(KEYS))).isEqualTo(key(7));
        }
    }

    /// Compiled code goes on behind a load that failed, with whatever its register held: taken for a length or an
    /// offset that ended one of the first four such processes.
    @ParameterizedTest
    @ValueSource(longs = {3, 0})
    void readsThatWereCompiledBeforeThePagesWentEndNoProcess(long seedOrNone) throws Exception {
        long seed = seedOrNone != 0 ? seedOrNone : System.nanoTime();
        System.out.println("unreadable pages: seed=" + seed);
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx256m",
                        "--enable-native-access=ALL-UNNAMED",
                        "--sun-misc-unsafe-memory-access=allow",
                        "-XX:-TieredCompilation",
                        "-XX:CompileThreshold=1000",
                        "-Xbatch",
                        "-XX:ErrorFile=" + directory.resolve("hs_err.log"),
                        "-cp",
                        System.getProperty("java.class.path"),
                        UnreadablePages.class.getName(),
                        directory.toString(),
                        Long.toString(seed))
                .redirectErrorStream(true)
                .start();
        String told = new String(process.getInputStream().readAllBytes());
        assertThat(process.waitFor()).as(told).isZero();
        assertThat(told.lines().filter(line -> line.endsWith("wrong=0")))
                .as(told)
                .hasSize(4);
    }

    /// What lies between where it failed and where it would go on is not known.
    @Test
    void aRangeThatFailedDoesNotGoOnBehindTheGap() throws Exception {
        writeTables(1);
        try (LsmStore store = (LsmStore) LsmStore.open(options(Compression.NONE));
                RangeCursor cursor = store.range(key(0), null)) {
            assertThat(cursor.next()).isTrue();
            Path table = tables().getFirst();
            byte[] content = Files.readAllBytes(table);
            cutTables();
            assertCannotBeRead(() -> {
                while (cursor.next()) {
                    cursor.value();
                }
            });
            Files.write(table, content, StandardOpenOption.WRITE);
            assertCannotBeRead(cursor::next);
            assertThatThrownBy(cursor::key).isInstanceOf(IllegalStateException.class);
        }
    }

    /// The log is nobody's yet: another one does.
    @Test
    void aNewLogThatCannotBeReachedIsReplacedByAnother() throws Exception {
        Allocator allocator = new Allocator();
        List<Path> logs = new ArrayList<>();
        ForwardingDisk disk = new ForwardingDisk(new RealDisk(allocator)) {
            @Override
            public LogFile createLog(Path path, long bytes, boolean direct, TimeSlices slices) throws IOException {
                LogFile log = super.createLog(path, bytes, direct, slices);
                logs.add(path);
                if (logs.size() == 2) {
                    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
                        channel.truncate(0);
                    }
                }
                return log;
            }
        };
        try (LsmStore store = LsmStore.open(options(Compression.NONE), disk, allocator)) {
            store.put(key(1), key(1));
            store.administration().flush(() -> false);
            assertThat(logs).hasSizeGreaterThan(2);
            assertThat(logs.get(1)).doesNotExist();
            assertThat(store.isWritable()).isTrue();
            store.put(key(2), key(2));
            assertThat(store.get(key(1))).isEqualTo(key(1));
            assertThat(store.get(key(2))).isEqualTo(key(2));
        }
    }

    private void writeTables(int count) {
        try (Store store = LsmStore.open(options(Compression.NONE))) {
            for (int table = 0; table < count; table++) {
                for (int i = 0; i < KEYS; i++) {
                    store.put(key(i), key(i + table));
                }
                store.administration().flush(() -> false);
            }
        }
    }

    /// As one that the disk has no room for: it must not end writing, now and after every start.
    @Test
    void aCompactionOfATableThatCannotBeReadIsTriedAgainAndTheRestGoesOn() throws Exception {
        writeTables(2);
        GatedDisk gate = new GatedDisk(new RealDisk(new Allocator()));
        gate.hold(GatedDisk.COMPACTION);
        StoreOptions options = options(Compression.NONE).toBuilder()
                .compaction(CompactionPolicyKind.LEVELED)
                .level0(2, 20, 40)
                .build();
        try (LsmStore store = LsmStore.open(options, gate, new Allocator());
                GatedDisk.Gates gates = gate.openedAtTheEnd()) {
            gate.awaitHeld(); // at its output, with the first entries read
            Map<Path, byte[]> inputs = new HashMap<>();
            for (Path table : tables()) {
                inputs.put(table, Files.readAllBytes(table));
            }
            assertThat(inputs).hasSize(2);
            cutTables();
            gate.letGo(GatedDisk.COMPACTION);
            Eventually.holds(() -> FullDiskTest.failedAttempt(store) != null);
            assertThat(FullDiskTest.failedAttempt(store))
                    .contains("a compaction failed and is tried again")
                    .contains("could not be read");
            assertThat(store.isWritable()).isTrue();
            store.put(key(KEYS), key(7));
            assertThat(store.get(key(KEYS))).isEqualTo(key(7));
            Eventually.holds(() -> filesLike(".table") == 2 && filesLike(FileNames.TEMPORARY) == 0);
            for (Map.Entry<Path, byte[]> input : inputs.entrySet()) { // the disk can give it again
                Files.write(input.getKey(), input.getValue(), StandardOpenOption.WRITE);
            }
            Eventually.holds(() -> store.metrics().compactions() == 1);
            for (int i = 0; i < KEYS; i++) {
                assertThat(store.get(key(i))).isEqualTo(key(i + 1));
            }
        }
    }

    /// Its records are nowhere else: it must not end writing, and be tried until the disk gives them again.
    @Test
    void aFlushOfALogThatCannotBeReadIsTriedAgainAndTheRestGoesOn() throws Exception {
        try (LsmStore store = (LsmStore) LsmStore.open(options(Compression.NONE))) {
            for (int i = 0; i < KEYS; i++) {
                store.put(key(i), key(i));
            }
            Path log;
            try (Stream<Path> files = Files.list(directory)) {
                log = files.filter(file -> file.toString().endsWith(".log"))
                        .min(Path::compareTo)
                        .orElseThrow();
            }
            byte[] content = Files.readAllBytes(log);
            try (FileChannel channel = FileChannel.open(log, StandardOpenOption.WRITE)) {
                channel.truncate(0);
            }
            assertThatThrownBy(() -> store.administration().flush(() -> false))
                    .isInstanceOf(AttemptFailedException.class)
                    .hasMessageContaining("a flush failed and is tried again")
                    .hasMessageContaining("could not be read");
            assertThat(store.isWritable()).isTrue();
            store.put(key(KEYS), key(7));
            assertThat(store.get(key(KEYS))).isEqualTo(key(7));
            assertThat(filesLike(".table")).isZero();
            Files.write(log, content, StandardOpenOption.WRITE); // the disk can give it again
            Eventually.holds(() -> store.metrics().flushes() == 1);
            assertThat(filesLike(FileNames.TEMPORARY)).isZero();
            for (int i = 0; i < KEYS; i++) {
                assertThat(store.get(key(i))).isEqualTo(key(i));
            }
        }
    }

    private long filesLike(String suffix) {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> file.toString().endsWith(suffix)).count();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /// The page cache has the page when an opening asks, and not any more when it is touched.
    @Test
    void anOpeningThatCannotReadAFilterOrAHashIndexSaysSoAndLeavesNothing() throws Exception {
        writeTables(1);
        Path table = tables().getFirst();
        byte[] content = Files.readAllBytes(table);
        Allocator allocator = new Allocator();
        ForwardingDisk disk = new ForwardingDisk(new RealDisk(allocator)) {
            @Override
            public ReadFile open(Path path) throws IOException {
                ReadFile file = super.open(path);
                return path.equals(table) ? new CutWhenMapped(file, table, content) : file;
            }
        };
        assertThatThrownBy(() -> LsmStore.open(options(Compression.NONE), disk, allocator))
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("cannot open the store")
                .isNotInstanceOf(CorruptionException.class);
        assertThat(allocator.allocatedBytes()).isZero();
        Files.write(table, content);
        try (Store store = LsmStore.open(options(Compression.NONE))) {
            assertThat(store.get(key(1))).isEqualTo(key(1));
        }
    }

    /// Calls read it, its mapping cannot be touched.
    private record CutWhenMapped(ReadFile file, Path path, byte[] content) implements ReadFile {
        @Override
        public long bytes() {
            return content.length;
        }

        @Override
        public long map() throws IOException {
            long address = file.map();
            try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
                channel.truncate(0);
            }
            return address;
        }

        @Override
        public void read(long position, long address, int bytes) {
            Memory.copy(Arrays.copyOfRange(content, (int) position, (int) position + bytes), address);
        }

        @Override
        public void close() throws IOException {
            file.close();
        }
    }
}
