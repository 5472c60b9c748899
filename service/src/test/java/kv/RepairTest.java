package kv;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.Stream;
import kv.lsm.LsmStore;
import kv.lsm.Store;
import kv.lsm.StoreOptions;
import kv.lsm.WalMode;
import kv.lsm.WriteBatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What `verify` and `repair` make of tables of an older version, and of batches of which the log does not hold
/// all.
class RepairTest {
    private static final int BATCHES = 5;
    private static final int BATCH_KEYS = 7;

    @TempDir(factory = InMemory.class)
    private Path directory;

    private int exit;

    private String tool(String command, Path store) {
        StringWriter out = new StringWriter();
        exit = Tool.run(
                new String[] {command, store.toString()}, new PrintWriter(out, true), new PrintWriter(out, true));
        return out.toString();
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static StoreOptions options(Path where) {
        return StoreOptions.at(where).toBuilder()
                .wal(WalMode.OS)
                .memtableBytes(64 << 10)
                .build();
    }

    private static Map<String, String> entries(Path store) {
        return Entries.of(options(store));
    }

    private Path oldStore(String name) throws IOException {
        Path store = Files.createDirectory(directory.resolve(name));
        for (String file : List.of("MANIFEST", "000004.table")) {
            try (InputStream in = Objects.requireNonNull(getClass().getResourceAsStream("/table-version-2/" + file))) {
                Files.copy(in, store.resolve(file));
            }
        }
        return store;
    }

    private static Map<String, String> oldEntries() {
        Map<String, String> entries = new TreeMap<>();
        for (int i = 0; i < 40; i++) {
            if (i != 7) {
                entries.put("key-" + i, "value " + i);
            }
        }
        return entries;
    }

    @Test
    void aTableOfVersion2IsFoundWholeAndKeptWithoutAManifest() throws IOException {
        Path store = oldStore("whole");
        assertThat(tool("verify", store)).contains("problems=0");
        assertThat(exit).isZero();
        assertThat(entries(store)).isEqualTo(oldEntries());
        Path headless = oldStore("headless");
        Files.delete(headless.resolve("MANIFEST"));
        tool("verify", headless);
        assertThat(exit).isEqualTo(1);
        tool("repair", headless);
        tool("verify", headless);
        assertThat(exit).isZero();
        assertThat(entries(headless)).isEqualTo(oldEntries());
    }

    @Test
    void aTableOfVersion2ThatIsDamagedAnywhereIsFoundAndWhatIsReadableKept() throws IOException {
        int whole = 0;
        int partly = 0;
        for (int offset = 0; offset < 1_560; offset += 13) {
            Path store = oldStore("damaged-" + offset);
            Path table = store.resolve("000004.table");
            byte[] content = Files.readAllBytes(table);
            content[offset] ^= (byte) (1 << offset % 8);
            Files.write(table, content);
            String verified = tool("verify", store);
            if (exit == 0) { // between the regions nothing is looked at
                assertThat(entries(store))
                        .as("damage at %d that is not found\n%s", offset, verified)
                        .isEqualTo(oldEntries());
                continue;
            }
            String repaired = tool("repair", store);
            boolean loses = exit == 1;
            tool("verify", store);
            assertThat(exit).as("offset %d\n%s", offset, repaired).isZero();
            Map<String, String> kept = entries(store);
            if (loses) {
                partly++;
                assertThat(repaired).contains("lost: ");
                assertThat(oldEntries()).containsAllEntriesOf(kept);
            } else {
                whole++;
                assertThat(kept).as("offset %d\n%s", offset, repaired).isEqualTo(oldEntries());
            }
        }
        assertThat(whole).as("damage outside of the entries").isPositive();
        assertThat(partly).as("damage of the entries").isPositive();
    }

    /// The log of a process that was killed behind its last batch.
    private byte[] log(List<String> name) throws IOException {
        Path original = directory.resolve("original");
        try (Store store = LsmStore.open(options(original))) {
            for (int batch = 0; batch < BATCHES; batch++) {
                List<WriteBatch.Write> writes = new ArrayList<>();
                for (int i = 0; i < BATCH_KEYS; i++) {
                    writes.add(
                            new WriteBatch.Write(ascii("batch-" + batch + "-" + i), ascii("value ".repeat(batch + 1))));
                }
                store.begin(new WriteBatch(writes)).await();
            }
            Path killed = Files.createDirectory(directory.resolve("killed"));
            try (Stream<Path> files = Files.list(original)) {
                for (Path file : files.toList()) {
                    Files.copy(file, killed.resolve(file.getFileName()));
                }
            }
        }
        try (Stream<Path> files = Files.list(directory.resolve("killed"))) {
            for (Path file : files.filter(file -> file.toString().endsWith(".log"))
                    .sorted()
                    .toList()) {
                byte[] content = Files.readAllBytes(file);
                if (new String(content, StandardCharsets.ISO_8859_1).contains("batch-")) {
                    name.add(file.getFileName().toString());
                    return content;
                }
            }
        }
        throw new AssertionError("no log holds the batches");
    }

    private int wholeBatches(Path store, String what) {
        Map<String, String> found = entries(store);
        int whole = 0;
        for (int batch = 0; batch < BATCHES; batch++) {
            String prefix = "batch-" + batch + "-";
            String value = "value ".repeat(batch + 1);
            List<String> values = found.entrySet().stream()
                    .filter(entry -> entry.getKey().startsWith(prefix))
                    .map(Map.Entry::getValue)
                    .toList();
            assertThat(values.size()).as("%s: keys of batch %d", what, batch).isIn(0, BATCH_KEYS);
            assertThat(values).as(what).allMatch(value::equals);
            whole += values.isEmpty() ? 0 : 1;
        }
        return whole;
    }

    private interface Damage {
        void of(byte[] content, int at);
    }

    /// @param wholeAtLeast of the batches, in the worst case
    private void everyBatchIsWholeOrGone(Damage damage, int step, int wholeAtLeast) throws IOException {
        List<String> name = new ArrayList<>();
        byte[] log = log(name);
        int used = log.length;
        while (log[used - 1] == 0) {
            used--;
        }
        List<Integer> wholes = new ArrayList<>();
        for (int at = 64; at < used; at += step) {
            Path store = directory.resolve("at-" + at);
            Files.createDirectory(store);
            try (Stream<Path> files = Files.list(directory.resolve("killed"))) {
                for (Path file : files.toList()) {
                    Files.copy(file, store.resolve(file.getFileName()));
                }
            }
            byte[] damaged = log.clone();
            damage.of(damaged, at);
            Files.write(store.resolve(name.getFirst()), damaged);
            String said = tool("verify", store) + tool("repair", store);
            assertThat(exit).as(said).isIn(0, 1);
            String again = tool("verify", store);
            assertThat(exit).as("offset %d\n%s%s", at, said, again).isZero();
            wholes.add(wholeBatches(store, "offset " + at + "\n" + said));
        }
        assertThat(wholes).contains(wholeAtLeast, BATCHES - 1).allMatch(whole -> whole >= wholeAtLeast);
    }

    @Test
    void ofABatchThatTheLogDoesNotHoldToItsEndRepairKeepsNothing() throws IOException {
        everyBatchIsWholeOrGone((content, at) -> Arrays.fill(content, at, content.length, (byte) 0), 24, 0);
    }

    @Test
    void ofABatchOfWhichARecordIsDamagedRepairKeepsNothingAndOfTheOthersAll() throws IOException {
        everyBatchIsWholeOrGone((content, at) -> content[at] ^= 0x10, 29, BATCHES - 1);
    }
}
