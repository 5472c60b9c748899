package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.Stream;
import kv.Entries;
import kv.Eventually;
import kv.InMemory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What `verify` and `repair` make of a store whose manifest, tables and logs do not fit together.
class StoreRepairTest {
    private final List<String> said = new ArrayList<>();
    /// Content of each file that the store has had, by its name.
    private final Map<String, byte[]> had = new HashMap<>();
    private final Map<String, String> written = new TreeMap<>();

    @TempDir(factory = InMemory.class)
    private Path directory;

    private Path original() {
        return directory.resolve("original");
    }

    private static StoreOptions options(Path where) {
        return StoreOptions.at(where).toBuilder()
                .wal(WalMode.OS)
                .memtableBytes(64 << 10)
                .compaction(CompactionPolicyKind.NONE)
                .build();
    }

    private void put(Store store, String key, String value) {
        store.put(key.getBytes(), value.getBytes());
        written.put(key, value);
    }

    private void delete(Store store, String key) {
        store.delete(key.getBytes());
        written.remove(key);
    }

    /// Returns when the log of what was flushed is gone, too, which it soon is: copies of the store are the same ones
    /// each time.
    private void flush(Store store) throws IOException {
        flush(store, original());
    }

    private static void flush(Store store, Path where) throws IOException {
        List<String> flushed = files(where).entrySet().stream()
                .filter(file -> file.getKey().endsWith(".log") && used(file.getValue()) > 0)
                .map(Map.Entry::getKey)
                .toList();
        store.administration().flush(() -> false);
        Eventually.holds(() -> flushed.stream().noneMatch(log -> Files.exists(where.resolve(log))));
    }

    private void remember() throws IOException {
        had.putAll(files(original()));
    }

    private static Map<String, byte[]> files(Path folder) throws IOException {
        Map<String, byte[]> files = new TreeMap<>();
        try (Stream<Path> all = Files.list(folder)) {
            for (Path file : all.filter(Files::isRegularFile).toList()) {
                try {
                    files.put(file.getFileName().toString(), Files.readAllBytes(file));
                } catch (NoSuchFileException deleted) {
                    // the store, which is open, needs it no longer
                }
            }
        }
        return files;
    }

    private Path storeOf(String name, Map<String, byte[]> files) throws IOException {
        Path store = Files.createDirectory(directory.resolve(name));
        for (Map.Entry<String, byte[]> file : files.entrySet()) {
            Files.write(store.resolve(file.getKey()), file.getValue());
        }
        return store;
    }

    private long verify(Path store) throws IOException {
        try (ClosedStore closed = ClosedStore.open(store)) {
            return new StoreVerifier(closed, finding -> said.add(finding.toString())).run();
        }
    }

    /// True when nothing was lost, as the repair says.
    private boolean repair(Path store) throws IOException {
        said.clear();
        try (ClosedStore closed = ClosedStore.open(store)) {
            return new StoreRepair(closed, said::add).run();
        }
    }

    private String text() {
        return String.join("\n", said);
    }

    private static Map<String, String> entries(Path store) {
        return Entries.of(options(store));
    }

    /// Where each edit begins, and where the last one ends.
    private static List<Integer> editBounds(Path store) throws IOException {
        try (ClosedStore closed = ClosedStore.open(store)) {
            List<Integer> bounds = new ArrayList<>(ManifestInspection.of(closed).offsets());
            bounds.add(Math.toIntExact(Files.size(store.resolve(FileNames.MANIFEST))));
            return bounds;
        }
    }

    private static byte[] flipped(byte[] content, int offset) {
        byte[] damaged = content.clone();
        damaged[offset] ^= 0x10;
        return damaged;
    }

    /// As when a running store is copied with the manifest first.
    @Test
    void withAManifestOfWhichTheLastEditsAreMissingNothingIsLost() throws IOException {
        Map<String, byte[]> last;
        try (Store store = LsmStore.open(options(original()))) {
            for (int round = 0; round < 6; round++) {
                for (int i = 0; i < 5; i++) {
                    put(store, "key-" + round + "-" + i, "value " + i);
                }
                if (round < 5) {
                    flush(store);
                }
                if (round % 2 == 1) {
                    store.administration().compact(() -> false);
                }
            }
            last = files(original());
        }
        List<Integer> bounds = editBounds(storeOf("killed", last));
        assertThat(bounds).hasSizeGreaterThan(8);
        for (int end : bounds.subList(1, bounds.size())) {
            Map<String, byte[]> copied = new TreeMap<>(last);
            copied.computeIfPresent(FileNames.MANIFEST, (name, content) -> Arrays.copyOf(content, end));
            Path store = storeOf("cut-" + end, copied);
            said.clear();
            boolean isDamaged = verify(store) > 0;
            assertThat(isDamaged).as(text()).isEqualTo(end < bounds.getLast());
            if (isDamaged) {
                repair(store);
            }
            assertThat(entries(store)).as("manifest cut at %d\n%s", end, text()).isEqualTo(written);
        }
    }

    @Test
    void aTableThatTheManifestDoesNotNameIsKeptInTheFolderOfWhatWasLost() throws IOException {
        try (Store store = LsmStore.open(options(original()))) {
            put(store, "a", "1");
            flush(store);
            remember();
            put(store, "b", "2");
            flush(store);
            store.administration().compact(() -> false);
        }
        Map<String, byte[]> files = files(original());
        String table = first(had, ".table", name -> true);
        files.put(table, had.get(table));
        String present = only(files, ".table", table);
        files.computeIfPresent(present, (name, content) -> flipped(content, content.length - 1));
        Path store = storeOf("store", files);
        repair(store);
        assertThat(entries(store)).as(text()).isEqualTo(written);
        assertThat(store.resolve("lost").resolve(table)).hasBinaryContent(had.get(table));
        assertThat(store.resolve(table)).doesNotExist();
    }

    /// The first file of these with this ending that is one of `which`.
    private static String first(Map<String, byte[]> files, String ending, Predicate<String> which) {
        return files.keySet().stream()
                .filter(name -> name.endsWith(ending) && which.test(name))
                .findFirst()
                .orElseThrow();
    }

    private static String only(Map<String, byte[]> files, String ending, String but) {
        return first(files, ending, name -> !name.equals(but));
    }

    /// What a file system leaves that has lost their deletion.
    @Test
    void withADamagedEditAnOldLogAndAnOldTableThatTheOthersTellOfAreNotTakenForNewOnes() throws IOException {
        Map<String, byte[]> last;
        try (Store store = LsmStore.open(options(original()))) {
            put(store, "overwritten", "old");
            put(store, "deleted", "old");
            remember();
            flush(store);
            remember();
            put(store, "overwritten", "new");
            delete(store, "deleted");
            flush(store);
            store.administration().compact(() -> false);
            for (int i = 0; i < 3; i++) {
                put(store, "later-" + i, "value");
                flush(store);
            }
            put(store, "last", "value");
            last = files(original());
        }
        List<Integer> bounds = editBounds(storeOf("killed", last));
        long removal = removal(directory.resolve("killed"));
        had.remove(FileNames.MANIFEST);
        had.forEach(last::putIfAbsent);
        for (int edit = 0; edit < bounds.size() - 1; edit++) {
            int offset = (bounds.get(edit) + bounds.get(edit + 1)) / 2;
            Map<String, byte[]> damaged = new TreeMap<>(last);
            damaged.computeIfPresent(FileNames.MANIFEST, (name, content) -> flipped(content, offset));
            Path store = storeOf("damaged-" + edit, damaged);
            assertThat(repair(store)).as("is whole").isFalse();
            if (edit == removal) { // nothing else tells it
                assertThat(text()).contains("the order of tables that the manifest does not name");
                continue;
            }
            assertThat(entries(store))
                    .as("edit %d is damaged\n%s", edit, text())
                    .isEqualTo(written);
        }
    }

    /// The one edit that removes tables.
    private static int removal(Path store) throws IOException {
        try (ClosedStore closed = ClosedStore.open(store)) {
            List<VersionEdit> edits = ManifestInspection.of(closed).edits();
            return edits.indexOf(edits.stream()
                    .filter(edit -> !edit.removed().isEmpty())
                    .findFirst()
                    .orElseThrow());
        }
    }

    @Test
    void withADamagedEditOfAFlushWhatALaterFlushOverwroteOrDeletedStaysSo() throws IOException {
        Map<String, byte[]> last;
        try (Store store = LsmStore.open(options(original()))) {
            put(store, "overwritten", "old");
            put(store, "deleted", "old");
            flush(store);
            put(store, "overwritten", "new");
            delete(store, "deleted");
            flush(store);
            put(store, "last", "value");
            last = files(original());
        }
        List<Integer> bounds = editBounds(storeOf("killed", last));
        assertThat(bounds).hasSize(4);
        for (int edit = 0; edit < bounds.size() - 1; edit++) {
            int offset = (bounds.get(edit) + bounds.get(edit + 1)) / 2;
            Map<String, byte[]> damaged = new TreeMap<>(last);
            damaged.computeIfPresent(FileNames.MANIFEST, (name, content) -> flipped(content, offset));
            Path store = storeOf("damaged-" + edit, damaged);
            repair(store);
            assertThat(entries(store))
                    .as("edit %d is damaged\n%s", edit, text())
                    .isEqualTo(written);
        }
    }

    /// As a compaction leaves it that was cut off before its edit.
    @Test
    void aTableThatNeverCountedIsNotTakenForNewerThanLaterFlushesWhereOneIsMissing() throws IOException {
        Map<String, byte[]> last;
        String missing;
        try (Store store = LsmStore.open(options(original()))) {
            put(store, "overwritten", "old");
            put(store, "deleted", "old");
            flush(store);
            put(store, "other", "1");
            flush(store);
            remember();
            put(store, "overwritten", "new");
            delete(store, "deleted");
            flush(store);
            Map<String, byte[]> flushed = files(original());
            store.put("missing".getBytes(), "1".getBytes());
            flush(store);
            last = files(original());
            missing = newTable(last, flushed);
        }
        Path compacted = storeOf("compacted", had);
        try (Store store = LsmStore.open(options(compacted))) {
            store.administration().compact(() -> false);
        }
        long number = had.keySet().stream()
                .flatMapToLong(name -> FileNames.logNumber(name).stream())
                .max()
                .orElseThrow();
        last.put(FileNames.table(number), files(compacted).get(newTable(files(compacted), had)));
        last.remove(missing);
        Path store = storeOf("store", last);
        assertThat(repair(store)).isFalse();
        assertThat(text()).contains("the order of tables that the manifest does not name");
        assertThat(entries(store)).as(text()).isEqualTo(written);
    }

    private static String newTable(Map<String, byte[]> after, Map<String, byte[]> before) {
        return first(after, ".table", name -> !before.containsKey(name));
    }

    @Test
    void anEarlierCopyOfALogUnderAHigherNumberBringsNothingBack() throws IOException {
        Map<String, byte[]> last;
        try (Store store = LsmStore.open(options(original()))) {
            put(store, "overwritten", "old");
            put(store, "deleted", "old");
            remember();
            put(store, "overwritten", "new");
            delete(store, "deleted");
            last = files(original());
        }
        byte[] copy = had.get(FileNames.log(1));
        last.put(FileNames.log(9), copy);
        Path store = storeOf("store", last);
        assertThat(verify(store)).isPositive();
        assertThat(repair(store)).as("is whole").isFalse();
        assertThat(text()).contains("lost: 000009.log: by its header a copy of 000001.log");
        assertThat(entries(store)).as(text()).isEqualTo(written);
        assertThat(store.resolve("lost").resolve(FileNames.log(9))).hasBinaryContent(copy);
    }

    @Test
    void anOldLogOrALaterOneInThePlaceOfALogIsALoss() throws IOException {
        try (Store store = LsmStore.open(options(original()))) {
            put(store, "old", "1");
            remember();
            flush(store);
            store.put("lost".getBytes(), "1".getBytes());
        }
        Map<String, byte[]> last = files(original());
        String needed = first(last, ".log", name -> used(last.get(name)) > 0);
        byte[] old = had.get(FileNames.log(1));
        try (Store store = LsmStore.open(options(original()))) {
            put(store, "later", "1".repeat(100));
        }
        Map<String, byte[]> later = files(original());
        byte[] laterLog = later.get(first(later, ".log", name -> !name.equals(needed) && used(later.get(name)) > 64));

        last.put(needed, old);
        Path replaced = storeOf("replaced", last);
        assertThat(repair(replaced)).as("is whole").isFalse();
        assertThat(text())
                .contains("lost: " + needed + ": by its header 000001.log, which is no longer needed; if the store had "
                        + "another log of that name, all that it held is lost");
        assertThat(replaced.resolve("lost").resolve(needed)).hasBinaryContent(old);

        last.put(needed, laterLog);
        Path overtaken = storeOf("overtaken", last);
        assertThat(repair(overtaken)).as("is whole").isFalse();
        assertThat(text()).contains("lost: " + needed + ": by its header");
        assertThat(entries(overtaken)).as(text()).isEqualTo(written);
    }

    @Test
    void logsUnderOtherNamesAreReadInTheOrderOfTheNumbersInTheirHeaders() throws IOException {
        Map<String, byte[]> last;
        try (Store store = LsmStore.open(options(original()))) {
            put(store, "overwritten", "old");
            put(store, "deleted", "old");
            remember();
            flush(store);
            put(store, "overwritten", "new");
            delete(store, "deleted");
            last = files(original());
        }
        String later = first(last, ".log", name -> used(last.get(name)) > 0);
        last.keySet().removeIf(name -> name.endsWith(".table")); // as if the flush had never been
        last.put(FileNames.MANIFEST, had.get(FileNames.MANIFEST));
        last.put(FileNames.log(99), had.get(FileNames.log(1)));
        Path renamed = storeOf("renamed", last);
        repair(renamed);
        assertThat(text()).contains("note: 000099.log: by its header 000001.log, and read as that");
        assertThat(entries(renamed)).as(text()).isEqualTo(written);

        last.put(FileNames.log(99), last.get(later));
        last.put(later, had.get(FileNames.log(1)));
        Path exchanged = storeOf("exchanged", last);
        repair(exchanged);
        assertThat(entries(exchanged)).as(text()).isEqualTo(written);
    }

    /// A table's bounds are keys, and a key can hold the bytes of an edit.
    @Test
    void anEditInsideAKeyIsNoneWhereverTheEditAroundItIsDamagedOrTorn() throws IOException {
        for (String other : List.of("a", "z")) {
            had.clear();
            ByteBuffer inside = ManifestFormat.record(new VersionEdit(999_999, false, 1_000_000, List.of(), List.of()));
            ByteBuffer key = ByteBuffer.allocate(inside.remaining() + 1).put((byte) 'k');
            Path where = directory.resolve("original-" + other);
            Map<String, byte[]> flushed;
            Map<String, byte[]> last;
            try (Store store = LsmStore.open(options(where))) {
                store.put(key.put(inside).array(), "1".getBytes());
                store.put(other.getBytes(), "1".getBytes());
                had.putAll(files(where));
                flush(store, where);
                flushed = files(where);
                store.put("acknowledged".getBytes(), "1".getBytes());
                last = files(where);
            }
            Map<String, String> all = entries(storeOf("whole-" + other, last));
            assertThat(all).hasSize(3).containsKey("acknowledged");
            List<Integer> bounds = editBounds(storeOf("killed-" + other, last));
            for (int offset = bounds.get(bounds.size() - 2); offset < bounds.getLast(); offset++) {
                String what = other + "-" + offset;
                Map<String, byte[]> damaged = new TreeMap<>(last);
                damaged.put(FileNames.MANIFEST, flipped(last.get(FileNames.MANIFEST), offset));
                Path store = storeOf("damaged-" + what, damaged);
                repair(store);
                assertThat(entries(store)).as("damaged-%s\n%s", what, text()).isEqualTo(all);

                Map<String, byte[]> torn = new TreeMap<>(had); // no log is deleted before the edit is durable
                flushed.forEach(torn::putIfAbsent);
                torn.put(FileNames.MANIFEST, Arrays.copyOf(flushed.get(FileNames.MANIFEST), offset));
                assertThat(entries(storeOf("torn-" + what, torn)))
                        .as("torn-%s", what)
                        .hasSize(2);
            }
        }
    }

    @Test
    void aStoreThatVerifyFindsNoProblemInOpensAndAnotherDoesSoAfterARepair() throws IOException {
        Map<String, byte[]> last;
        try (Store store = LsmStore.open(options(original()))) {
            put(store, "a", "1");
            flush(store);
            put(store, "b", "2");
            last = files(original());
        }
        for (String name : List.copyOf(last.keySet())) {
            int bytes = name.endsWith(".log") ? 64 : name.equals(FileNames.MANIFEST) ? last.get(name).length : 0;
            for (int offset = 0; offset < bytes; offset++) {
                Map<String, byte[]> damaged = new TreeMap<>(last);
                damaged.put(name, flipped(last.get(name), offset));
                opensIfVerifyFindsNothingOrItIsRepaired(name + "-" + offset, damaged);
            }
        }
        for (String text : List.of("somebody else's", "x".repeat(1_000))) {
            Map<String, byte[]> foreign = new TreeMap<>(last);
            foreign.put("000077.log", text.getBytes());
            Path store = opensIfVerifyFindsNothingOrItIsRepaired("foreign-" + text.length(), foreign);
            assertThat(store.resolve("lost").resolve("000077.log")).hasContent(text);
        }
    }

    private Path opensIfVerifyFindsNothingOrItIsRepaired(String what, Map<String, byte[]> files) throws IOException {
        Path store = storeOf(what, files);
        if (verify(store) == 0) {
            assertThat(entries(store)).as(what).isEqualTo(written);
        } else {
            repair(store);
            assertThat(verify(store)).as("%s\n%s", what, text()).isZero();
            assertThat(entries(store)).as("%s\n%s", what, text()).isEqualTo(written);
        }
        return store;
    }

    @Test
    void anotherWholeTableUnderTheNameOfOneIsALossAndNotPartOfTheStore() throws IOException {
        for (boolean inLevel0 : new boolean[] {true, false}) {
            Path where = directory.resolve("original-" + inLevel0);
            StoreOptions options =
                    options(where).toBuilder().tableBytes(4 << 10).build();
            try (Store store = LsmStore.open(options)) {
                put(store, "a", "1");
                flush(store, where);
                put(store, "b", "2");
                put(store, "c", "3");
                if (inLevel0) {
                    flush(store, where);
                } else {
                    for (int i = 0; i < 40; i++) {
                        put(store, "d" + i, "x".repeat(500));
                    }
                    store.administration().compact(() -> false);
                }
            }
            List<String> tables = files(where).keySet().stream()
                    .filter(name -> name.endsWith(".table"))
                    .toList();
            assertThat(tables).hasSizeGreaterThan(1);
            byte[] other = Files.readAllBytes(where.resolve(tables.getLast()));
            Files.write(where.resolve(tables.getFirst()), other);
            assertThat(repair(where)).as("nothing was lost\n%s", text()).isFalse();
            assertThat(said)
                    .anyMatch(line -> line.startsWith("lost: " + tables.getFirst() + ": not the table")
                            && line.contains(": keys from a to "));
            assertThat(where.resolve("lost").resolve(tables.getFirst())).hasBinaryContent(other);
            assertThat(verify(where)).isZero();
            Map<String, String> kept = entries(where);
            assertThat(kept).isNotEmpty().doesNotContainKey("a");
            assertThat(written).containsAllEntriesOf(kept);
            written.clear();
        }
    }

    /// As one that is whole is found out: there what is left of another may share keys with its neighbours.
    @Test
    void whatIsLeftOfAnotherTableUnderTheNameOfOneInALevelMayOverlapOthers() throws IOException {
        StoreOptions options = options(original()).toBuilder()
                .tableBytes(4 << 10)
                .blockBytes(512)
                .build();
        try (Store store = LsmStore.open(options)) {
            for (int i = 0; i < 60; i++) {
                put(store, "key-%02d".formatted(i), "x".repeat(500));
            }
            store.administration().compact(() -> false);
        }
        List<String> tables = files(original()).keySet().stream()
                .filter(name -> name.endsWith(".table"))
                .toList();
        assertThat(tables).hasSizeGreaterThan(3);
        byte[] other = Files.readAllBytes(original().resolve(tables.get(2)));
        Files.write(original().resolve(tables.getFirst()), flipped(other, 30));
        assertThat(repair(original())).isFalse();
        assertThat(verify(original())).as(text()).isZero();
        assertThat(written).containsAllEntriesOf(entries(original()));
    }

    @Test
    void ofATornLogARepairForAnotherReasonKeepsWhatAnOpeningWould() throws IOException {
        Map<String, byte[]> last;
        try (Store store = LsmStore.open(options(original()))) {
            put(store, "table", "1");
            flush(store);
            for (int i = 0; i < 40; i++) {
                put(store, "log-" + i, "x".repeat(100));
            }
            last = files(original());
        }
        String log = first(last, ".log", name -> used(last.get(name)) > 1_024);
        byte[] torn = last.get(log).clone();
        Arrays.fill(torn, 512, 1_024, (byte) 0); // a sector that was not written, before others that were
        last.put(log, torn);
        Map<String, String> opened = entries(storeOf("opened", last));
        assertThat(opened).containsKey("log-0").doesNotContainKey("log-39");
        String table = only(last, ".table", "");
        last.computeIfPresent(table, (name, content) -> flipped(content, content.length - 1));
        Path store = storeOf("repaired", last);
        assertThat(verify(store)).isPositive();
        repair(store);
        assertThat(entries(store)).as(text()).isEqualTo(opened);
        assertThat(store.resolve("lost").resolve(log)).hasBinaryContent(torn);
    }

    /// Or what one log that was not deleted leaves out would take later ones along.
    @Test
    void withoutAManifestALogThatIsMissingBeforeOthersCostsNoneOfThem() throws IOException {
        Map<String, byte[]> last;
        try (Store store = LsmStore.open(options(original()))) {
            put(store, "a", "1");
            remember();
            for (String key : List.of("b", "c")) {
                flush(store);
                put(store, key, "2");
            }
            last = files(original());
        }
        String first = had.keySet().stream()
                .filter(name -> name.endsWith(".log"))
                .min(String::compareTo)
                .orElseThrow();
        assertThat(last).doesNotContainKey(first);
        last.put(first, had.get(first));
        last.remove(FileNames.MANIFEST);
        Path store = storeOf("store", last);
        repair(store);
        assertThat(entries(store)).as(text()).isEqualTo(written);
    }

    private static int used(byte[] content) {
        int used = content.length;
        while (used > 0 && content[used - 1] == 0) {
            used--;
        }
        return used;
    }
}
