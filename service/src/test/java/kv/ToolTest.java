package kv;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import kv.lsm.Compression;
import kv.lsm.LsmStore;
import kv.lsm.RangeCursor;
import kv.lsm.Store;
import kv.lsm.StoreOptions;
import kv.lsm.WalMode;
import kv.lsm.log.WriteAheadLogFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// `verify`, `dump` and `repair` on stores with damage planted in every region of every kind of file.
/// `-Dkv.damage.stride=1` damages every byte.
class ToolTest {
    private static final int STRIDE = Integer.getInteger("kv.damage.stride", 2_003);
    private static final int KEYS = 1_200;
    /// what one damaged block of 512 bytes can hold
    private static final int BLOCK_ENTRIES_MAX = 20;

    @TempDir(factory = InMemory.class)
    private Path directory;

    private int exit;

    private String tool(String... arguments) {
        StringWriter out = new StringWriter();
        exit = Tool.run(arguments, new PrintWriter(out, true), new PrintWriter(out, true));
        return out.toString();
    }

    private static byte[] key(int i) {
        return "key-%05d".formatted(i * 7919 % KEYS).getBytes(StandardCharsets.US_ASCII);
    }

    private static byte[] value(int i) {
        return ("value " + "abcdefgh".repeat(i % 9) + i).getBytes(StandardCharsets.US_ASCII);
    }

    private static StoreOptions options(Path where, Compression compression) {
        return StoreOptions.at(where).toBuilder()
                .wal(WalMode.OS)
                .memtableBytes(16 << 10)
                .tableBytes(8 << 10)
                .blockBytes(512)
                .level1Bytes(24 << 10)
                .level0(3, 20, 40)
                .compression(compression)
                .build();
    }

    /// A store as a killed process leaves it: tables in several levels, a log with records. Each key was
    /// written once.
    private Path written(Compression compression) throws IOException {
        Path original = directory.resolve("original");
        Path killed = directory.resolve("killed");
        try (Store store = LsmStore.open(options(original, compression))) {
            for (int i = 0; i < KEYS; i++) {
                store.put(key(i), value(i));
            }
            store.administration().awaitIdle(java.time.Duration.ofSeconds(60), () -> false);
            assertThat(store.metrics().levels()).hasSizeGreaterThan(1);
            copy(original, killed);
        }
        return killed;
    }

    private static void copy(Path from, Path to) {
        try (Stream<Path> files = Files.list(from)) {
            Files.createDirectories(to);
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                Files.write(to.resolve(file.getFileName()), Files.readAllBytes(file));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Map<String, String> entries(Path store) {
        Map<String, String> found = new TreeMap<>();
        try (Store opened = LsmStore.open(options(store, Compression.NONE));
                RangeCursor cursor = opened.range(new byte[0], null)) {
            while (cursor.next()) {
                found.put(new String(cursor.key()), new String(cursor.value()));
            }
        }
        return found;
    }

    private static Map<String, String> all() {
        Map<String, String> all = new TreeMap<>();
        for (int i = 0; i < KEYS; i++) {
            all.put(new String(key(i)), new String(value(i)));
        }
        return all;
    }

    private static List<Path> files(Path store, String kind) throws IOException {
        try (Stream<Path> files = Files.list(store)) {
            return files.filter(file -> file.getFileName().toString().endsWith(kind))
                    .sorted()
                    .toList();
        }
    }

    @ParameterizedTest
    @EnumSource
    void aChangedByteAnywhereIsFoundOrHarmlessAndRepairKeepsAllButItsBlock(Compression compression) throws IOException {
        Path store = written(compression);
        Map<String, String> all = all();
        int found = 0;
        int tried = 0;
        for (String kind : List.of("MANIFEST", ".table", ".log")) {
            List<Path> files = files(store, kind);
            assertThat(files).as(kind).isNotEmpty();
            for (Path file : new TreeSet<>(List.of(files.getFirst(), files.getLast()))) {
                byte[] content = Files.readAllBytes(file);
                int used = content.length;
                while (used > 0 && content[used - 1] == 0) {
                    used--;
                }
                for (int offset : offsets(used, kind)) {
                    String name = file.getFileName().toString();
                    byte[] damaged = content.clone();
                    damaged[offset] ^= (byte) (1 << offset % 8);
                    int lost =
                            damageAndRepair(store, name, damaged, all, compression + " " + name + " offset " + offset);
                    assertThat(lost)
                            .as("keys lost by %s offset %d", name, offset)
                            .isLessThanOrEqualTo(
                                    switch (kind) {
                                        case ".table" -> BLOCK_ENTRIES_MAX;
                                        case ".log" -> 1;
                                        default -> 0;
                                    });
                    found += exit == 0 ? 0 : 1;
                    tried++;
                }
            }
        }
        assertThat(tried)
                .as("bytes damaged, more or fewer as compaction came to cut the tables")
                .isGreaterThan(10);
        System.out.println("damage planted: " + tried + ", lossy repairs: " + found + ", compression=" + compression);
    }

    private static List<Integer> offsets(int used, String kind) {
        List<Integer> offsets = new ArrayList<>();
        for (int offset = 0; offset < used; offset += kind.equals("MANIFEST") ? Math.max(1, STRIDE / 8) : STRIDE) {
            offsets.add(offset);
        }
        for (int offset = Math.max(0, used - 88); offset < used; offset += Math.max(1, STRIDE / 20)) {
            offsets.add(offset); // a table's footer
        }
        for (int offset = 0; offset < Math.min(used, 64); offset += Math.max(1, STRIDE / 20)) {
            offsets.add(offset); // a log's and the manifest's header
        }
        return offsets.stream().distinct().sorted().toList();
    }

    /// How many keys are gone; the exit code of the repair is then in [#exit].
    private int damageAndRepair(Path store, String name, byte[] content, Map<String, String> all, String what)
            throws IOException {
        Path copy = directory.resolve("copy");
        deleteAll(copy);
        copy(store, copy);
        Files.write(copy.resolve(name), content);
        String verified = tool("verify", copy.toString());
        int verifyExit = exit;
        assertThat(verifyExit).as(what + "\n" + verified).isIn(0, 1);
        assertThat(Files.readAllBytes(copy.resolve(name)))
                .as("verify changes nothing")
                .isEqualTo(content);
        if (verifyExit == 0) {
            exit = 0;
            Map<String, String> harmless = entries(copy);
            if (name.endsWith(".log")) {
                all.forEach((key, value) ->
                        assertThat(harmless.getOrDefault(key, value)).isEqualTo(value));
                return Math.min(1, all.size() - harmless.size()); // not known to be durable: a torn end
            }
            assertThat(harmless).as(what + ": verify found nothing").isEqualTo(all);
            return 0;
        }
        String repaired = tool("repair", copy.toString());
        assertThat(exit).as(what + "\n" + verified + "\n" + repaired).isIn(0, 1);
        int repairExit = exit;
        assertThat(copy.resolve("lost").resolve(name))
                .as(what + "\n" + repaired)
                .exists()
                .hasBinaryContent(content);
        String again = tool("verify", copy.toString());
        assertThat(exit).as(what + "\n" + repaired + "\n" + again).isZero();
        Map<String, String> kept = entries(copy);
        kept.forEach((key, value) ->
                assertThat(value).as("%s: value of %s", what, key).isEqualTo(all.get(key)));
        exit = repairExit;
        int lost = all.size() - kept.size();
        assertThat(lost == 0 || repaired.contains("lost: "))
                .as(what + "\n" + repaired)
                .isTrue();
        return lost;
    }

    private static void deleteAll(Path folder) throws IOException {
        if (Files.exists(folder)) {
            try (Stream<Path> files = Files.walk(folder)) {
                for (Path file :
                        files.sorted(java.util.Comparator.reverseOrder()).toList()) {
                    Files.delete(file);
                }
            }
        }
    }

    @Test
    void cutOffAndMissingFilesAreFoundAndTheRestIsKept() throws IOException {
        Path store = written(Compression.NONE);
        Map<String, String> all = all();
        for (String kind : List.of("MANIFEST", ".table", ".log")) {
            Path file = files(store, kind).getFirst();
            byte[] content = Files.readAllBytes(file);
            for (int length :
                    new int[] {0, 1, 15, 63, 64, 100, content.length / 2, content.length - 89, content.length - 1}) {
                int lost = damageAndRepair(
                        store,
                        file.getFileName().toString(),
                        Arrays.copyOf(content, Math.max(length, 0)),
                        all,
                        kind + " cut to " + length);
                if (kind.equals("MANIFEST")) {
                    assertThat(lost).isZero();
                }
            }
        }
        for (String kind : List.of("MANIFEST", ".table")) {
            Path copy = directory.resolve("copy");
            deleteAll(copy);
            copy(store, copy);
            Path gone = files(copy, kind).getFirst();
            Files.delete(gone);
            assertThat(tool("verify", copy.toString())).contains("problem: " + gone.getFileName());
            assertThat(exit).isEqualTo(1);
            tool("repair", copy.toString());
            assertThat(exit).isEqualTo(1);
            Map<String, String> kept = entries(copy);
            kept.forEach((key, value) -> assertThat(value).isEqualTo(all.get(key)));
            assertThat(kept.size()).isGreaterThan(kind.equals("MANIFEST") ? KEYS - 1 : KEYS / 2);
        }
    }

    /// A damaged block that held a newer value lets an older one come back: the repair has to say that it may.
    @Test
    void theReportOfALostBlockSaysThatOlderValuesMayComeBack() throws IOException {
        Path store = directory.resolve("store");
        try (Store opened = LsmStore.open(options(store, Compression.NONE))) {
            opened.put("a".getBytes(), "old".getBytes());
            opened.administration().compact(() -> false);
            opened.put("a".getBytes(), "new".getBytes());
            opened.put("b".getBytes(), "x".getBytes());
            opened.administration().flush(() -> false);
        }
        Path newer = files(store, ".table").getLast();
        byte[] content = Files.readAllBytes(newer);
        content[20] ^= 1;
        Files.write(newer, content);
        assertThat(tool("repair", store.toString())).contains("lost: ", "older values of their keys may come back");
        assertThat(exit).isEqualTo(1);
        assertThat(entries(store)).isEqualTo(Map.of("a", "old"));
    }

    @Test
    void aStoreWithoutAProblemIsLeftAsItIs() throws IOException {
        Path store = written(Compression.NONE);
        assertThat(tool("verify", store.toString())).contains("ok: ", "problems=0");
        assertThat(exit).isZero();
        List<Path> before = files(store, "");
        assertThat(tool("repair", store.toString())).endsWith("nothing to repair\n");
        assertThat(exit).isZero();
        assertThat(files(store, "")).isEqualTo(before);
        assertThat(entries(store)).isEqualTo(all());
    }

    @Test
    void aStoreInUseAndWhatIsNoStoreAreRefused() throws IOException {
        Path store = directory.resolve("store");
        try (Store opened = LsmStore.open(StoreOptions.at(store))) {
            opened.put(key(1), value(1));
            for (String command : List.of("verify", "dump", "repair")) {
                assertThat(tool(command, store.toString()))
                        .startsWith("kv.Tool: ")
                        .contains("in use")
                        .hasLineCount(1);
                assertThat(exit).isEqualTo(2);
            }
        }
        Path empty = Files.createDirectory(directory.resolve("empty"));
        for (String command : List.of("verify", "dump", "repair")) {
            assertThat(tool(command, empty.toString())).contains("not the directory of a store");
            assertThat(exit).isEqualTo(2);
            assertThat(tool(command)).contains("DIR");
            assertThat(exit).isEqualTo(2);
        }
        assertThat(empty).isEmptyDirectory();
        Path unlockable =
                Files.createDirectories(directory.resolve("unlockable").resolve("LOCK"));
        Files.createFile(unlockable.resolveSibling("MANIFEST"));
        assertThat(tool("verify", unlockable.getParent().toString()))
                .contains("cannot open the store: directory=", "LOCK: Is a directory")
                .doesNotContain("Exception")
                .hasLineCount(1);
        assertThat(exit).isEqualTo(2);
        tool("nonsense", store.toString());
        assertThat(exit).isEqualTo(2);
        tool();
        assertThat(exit).isEqualTo(2);
    }

    /// 1 would say that the store is damaged.
    @Test
    void aKeyOrANumberThatIsNoneIsOneLineThatNamesTheOptionAndExitCode2() throws IOException {
        Path store = directory.resolve("store");
        LsmStore.open(StoreOptions.at(store)).close();
        for (String wrong : List.of(
                "--start=\\xzz", "--start=a\\x4", "--end=\\x-1", "--limit=-1", "--limit=x", "--value-bytes=-1")) {
            assertThat(tool("dump", wrong, store.toString()))
                    .startsWith("kv.Tool: ")
                    .contains(wrong.substring(0, wrong.indexOf('=')))
                    .hasLineCount(1);
            assertThat(exit).as(wrong).isEqualTo(2);
        }
        tool("dump", "--start=\\x5cxzz", "--limit=0", "--value-bytes=0", store.toString());
        assertThat(exit).isZero();
    }

    @Test
    void aDumpOfEntriesSaysThatATableIsMissing() throws IOException {
        Path store = written(Compression.NONE);
        Path table = files(store, ".table").getFirst();
        Files.delete(table);
        assertThat(tool("dump", store.toString()))
                .contains(
                        "a table that the manifest names is missing",
                        table.getFileName().toString())
                .hasLineCount(1);
        assertThat(exit).isEqualTo(1);
    }

    @Test
    void aDumpOfAFileThatTheStoreDoesNotHoldIsRefused() throws IOException {
        Path store = written(Compression.NONE);
        for (String what : List.of("tables", "logs")) {
            for (String file : List.of("nosuch.table", "MANIFEST", "/", "")) {
                assertThat(tool("dump", "--what", what, "--file=" + file, store.toString()))
                        .startsWith("kv.Tool: ")
                        .contains("file=" + file)
                        .hasLineCount(1);
                assertThat(exit).isEqualTo(2);
            }
        }
        for (String what : List.of("entries", "manifest")) { // which would show more than the file
            assertThat(tool("dump", "--what", what, "--file=000001.log", store.toString()))
                    .contains("--file needs --what tables or logs: --file=000001.log")
                    .hasLineCount(1);
            assertThat(exit).isEqualTo(2);
        }
        String table = files(store, ".table").getFirst().toString();
        assertThat(tool("dump", "--what", "tables", "--limit=1", "--file=" + table, store.toString()))
                .isNotEmpty();
        assertThat(exit).isZero();
    }

    @Test
    void aDumpThatTellsOfAProblemSaysSoByItsExitCode() throws IOException {
        Path store = written(Compression.NONE);
        for (String what : List.of("tables", "manifest", "logs")) {
            assertThat(tool("dump", "--what", what, store.toString())).doesNotContain("problem: ");
            assertThat(exit).as(what).isZero();
        }
        Path table = files(store, ".table").getFirst();
        byte[] content = Files.readAllBytes(table);
        Files.write(table, Arrays.copyOf(content, content.length - 1));
        assertThat(tool("dump", "--what", "tables", store.toString())).contains("problem: " + table.getFileName());
        assertThat(exit).isEqualTo(1);
        Files.delete(table);
        byte[] manifest = Files.readAllBytes(store.resolve("MANIFEST"));
        manifest[20] ^= 1;
        Files.write(store.resolve("MANIFEST"), manifest);
        assertThat(tool("dump", "--what", "manifest", store.toString())).contains("problem: MANIFEST");
        assertThat(exit).isEqualTo(1);
        Path log = files(store, ".log").getFirst();
        byte[] records = Files.readAllBytes(log);
        int inFirstRecord = WriteAheadLogFormat.HEADER_BYTES + WriteAheadLogFormat.RECORD_HEADER_BYTES;
        for (int offset : new int[] {0, inFirstRecord}) {
            byte[] damaged = records.clone();
            damaged[offset] ^= 1;
            Files.write(log, damaged);
            assertThat(tool("dump", "--what", "logs", store.toString())).contains("problem: " + log.getFileName());
            assertThat(exit).as("byte %d of a log", offset).isEqualTo(1);
        }
        int end = records.length;
        while (records[end - 1] == 0) {
            end--;
        }
        records[end - 1] ^= 1;
        Files.write(log, records);
        assertThat(tool("dump", "--what", "logs", store.toString()))
                .contains("note: " + log.getFileName() + ": the end is torn")
                .doesNotContain("problem: ");
        assertThat(exit).isZero();
    }

    @Test
    void anErrorOfTheFileSystemSaysWhatItIs() throws IOException {
        Path store = written(Compression.NONE);
        Files.write(files(store, ".table").getFirst(), new byte[10]);
        Files.createFile(store.resolve("lost"));
        assertThat(tool("repair", store.toString()))
                .contains(
                        "kv.Tool: the repair was cut off; nothing is lost by that, run it again when the reason is "
                                + "gone: directory=" + store,
                        "reason=not a directory: " + store.resolve("lost"));
        assertThat(exit).isEqualTo(2);
    }

    @Test
    void dumpShowsEntriesRecordsAndEditsEscaped() throws IOException {
        Path store = directory.resolve("store");
        try (Store opened = LsmStore.open(StoreOptions.at(store))) {
            opened.put(new byte[] {'a', 0, ' ', '\\', (byte) 0xff}, "one\n".getBytes());
            opened.put("b".getBytes(), "two".getBytes());
            opened.administration().flush(() -> false);
            opened.put("c".getBytes(), "x".repeat(100).getBytes());
            opened.delete("b".getBytes());
        }
        assertThat(tool("dump", store.toString()).lines())
                .containsExactly("put a\\x00\\x20\\x5c\\xff one\\x0a", "put c " + "x".repeat(64) + "... (100 bytes)");
        assertThat(exit).isZero();
        assertThat(tool("dump", "--start", "a\\x00", "--end", "b", store.toString())
                        .lines())
                .hasSize(1);
        assertThat(tool("dump", "--limit", "1", "--value-bytes", "1", store.toString())
                        .lines())
                .containsExactly(
                        "put a\\x00\\x20\\x5c\\xff o... (4 bytes)",
                        "kv.Tool: there is more, only the first lines were shown: --limit=1");
        assertThat(tool("dump", "--limit", "2", store.toString()).lines()).hasSize(2);
        assertThat(tool("dump", "--what", "tables", store.toString()).lines())
                .anySatisfy(line -> assertThat(line).matches("\\d+\\.table put b two"));
        assertThat(tool("dump", "--what", "logs", store.toString()).lines())
                .anySatisfy(line -> assertThat(line).matches("\\d+\\.log offset=\\d+ delete b"));
        assertThat(tool("dump", "--what", "manifest", store.toString()))
                .contains("edit offset=16 ", "  + ", "level=0", "entries=2");
    }
}
