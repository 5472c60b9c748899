package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import kv.Eventually;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// What an opening takes for the remainder of a store's life, what it refuses, and what it deletes when. All
/// crashes of all calls are [EveryOpeningTest]'s.
class OpeningTest {
    private static List<String> sortedNames(FaultyDisk disk) throws Exception {
        return disk.list(StoreState.DIRECTORY).stream().sorted().toList();
    }

    private static void refusesToOpenAndKeepsEveryFile(FaultyDisk disk, WalMode wal) throws Exception {
        List<String> before = sortedNames(disk);
        Allocator allocator = new Allocator();
        assertThatThrownBy(() -> LsmStore.open(StoreState.options(wal), disk, allocator))
                .isInstanceOf(CorruptionException.class)
                .hasMessageContaining("MANIFEST")
                .hasMessageContaining("the manifest is missing, but there is data");
        assertThat(allocator.allocatedBytes()).isZero();
        assertThat(sortedNames(disk)).isEqualTo(before);
    }

    /// As long as the disk is full, each would take the room of another log.
    @ParameterizedTest
    @EnumSource(
            value = StoreState.class,
            names = {"NEW", "CLOSED_LOG", "SEVERAL_LOGS", "TABLES", "TABLES_AND_LOG"})
    void aStartThatFailsBehindItsNewLogLeavesNoneThatTheManifestDoesNotName(StoreState state) throws Exception {
        StoreOptions options = StoreState.options(WalMode.ALWAYS);
        int[] left = {1};
        for (int failing = 1; left[0] == 1; failing++) {
            FaultyDisk disk = state.make(WalMode.ALWAYS, 1).disk();
            List<String> before = logs(disk);
            int[] created = {0};
            int[] behind = {0};
            left[0] = 0;
            int at = failing;
            Thread opener = Thread.currentThread(); // what others do is not of the opening
            disk.setFaults((count, what) -> {
                if (Thread.currentThread() != opener) {
                    return false;
                }
                created[0] |= what.startsWith("create") && what.endsWith(".log") ? 1 : 0;
                behind[0] += created[0];
                boolean fails = behind[0] == at + 1 && left[0] == 0 && !what.startsWith("close");
                left[0] |= fails ? 1 : 0;
                return fails;
            });
            Allocator allocator = new Allocator();
            LsmStore opened = null;
            try {
                opened = LsmStore.open(options, disk, allocator);
            } catch (StoreException e) {
                assertThat(e).hasMessageContaining("planted fault");
            }
            disk.setFaults(FaultyDisk.NONE);
            if (opened != null) { // what failed there can wait
                opened.close();
                continue;
            }
            assertThat(allocator.allocatedBytes()).isZero();
            List<String> more = new ArrayList<>(logs(disk));
            more.removeAll(before);
            if (disk.list().contains(FileNames.MANIFEST)) {
                more.remove(FileNames.log(Manifest.read(disk, StoreState.DIRECTORY, allocator)
                        .edits()
                        .getLast()
                        .firstLog()));
            }
            assertThat(more)
                    .as("logs left behind when call %d behind the new one fails", at)
                    .isEmpty();
        }
    }

    private static List<String> logs(FaultyDisk disk) {
        return disk.list().stream().filter(name -> name.endsWith(".log")).toList();
    }

    @Test
    void aStoreWithAFileOfTheHighestNumberIsRefusedAndKept() throws Exception {
        FaultyDisk disk = StoreState.CLOSED_LOG.make(WalMode.OS, 1).disk();
        disk.setContent("999999999999999999.log", new byte[0]);
        List<String> before = sortedNames(disk);
        assertThatThrownBy(() -> LsmStore.open(StoreState.options(WalMode.OS), disk, new Allocator()))
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("move the file with the highest number away");
        assertThat(sortedNames(disk)).isEqualTo(before);
    }

    @ParameterizedTest
    @EnumSource
    void tablesWithoutAManifestAreRefusedAndKept(WalMode wal) throws Exception {
        FaultyDisk disk = StoreState.TABLES.make(wal, 1).disk();
        disk.remove(FileNames.MANIFEST);
        refusesToOpenAndKeepsEveryFile(disk, wal);
    }

    @ParameterizedTest
    @EnumSource
    void logsWithRecordsWithoutAManifestAreRefusedAndKept(WalMode wal) throws Exception {
        FaultyDisk disk = StoreState.UNCLOSED_LOG.make(WalMode.OS, 1).disk();
        disk.remove(FileNames.MANIFEST);
        refusesToOpenAndKeepsEveryFile(disk, wal);
    }

    /// A first opening makes its log before the manifest.
    @ParameterizedTest
    @EnumSource
    void anEmptyLogWithoutAManifestIsWhatAnInterruptedFirstOpeningLeaves(WalMode wal) throws Exception {
        FaultyDisk disk = StoreState.FIRST_OPENING_INTERRUPTED.make(wal, 1).disk();
        disk.remove(FileNames.MANIFEST);
        assertThat(sortedNames(disk)).noneMatch(name -> name.equals(FileNames.MANIFEST));
        try (Store store = LsmStore.open(StoreState.options(wal), disk, new Allocator())) {
            store.put(new byte[] {1}, new byte[] {2});
            assertThat(store.get(new byte[] {1})).containsExactly(2);
        }
    }

    /// Somebody may have made them; the numbers in their names are not given to files of the store.
    @Test
    void directoriesNamedLikeFilesOfTheStoreAreLeftAlone(@TempDir Path directory) throws Exception {
        List<Path> made = Stream.of(
                        "000002.table", "000003.log", "000004.table.tmp", "000077.table", "000078.log", "x.tmp")
                .map(directory::resolve)
                .toList();
        for (Path folder : made) {
            Files.createDirectory(folder);
        }
        Files.createFile(made.getFirst().resolve("somebody's"));
        for (int opening = 0; opening < 3; opening++) {
            byte[] key = {(byte) opening};
            try (Store store = LsmStore.open(StoreOptions.at(directory))) {
                store.put(key, key);
                store.administration().flush(() -> false);
                for (byte earlier = 0; earlier <= opening; earlier++) {
                    assertThat(store.get(new byte[] {earlier})).containsExactly(earlier);
                }
            }
            assertThat(made).allSatisfy(folder -> assertThat(folder).isDirectory());
        }
        assertThat(made.getFirst().resolve("somebody's")).exists();
    }

    /// Whoever names the wrong directory shall not lose what is in it.
    @Test
    void filesOfSomebodyElseAreLeftAlone(@TempDir Path directory) throws Exception {
        Path notes = Files.writeString(directory.resolve("notes.tmp"), "somebody's");
        Path unnumbered = Files.writeString(directory.resolve("x.table.tmp"), "somebody's");
        // numbers that a store writes in another way
        Path log = Files.writeString(directory.resolve("77.log"), "somebody's");
        Path table = Files.writeString(directory.resolve("0000078.table"), "somebody's");
        for (int opening = 0; opening < 3; opening++) {
            try (Store store = LsmStore.open(StoreOptions.at(directory))) {
                store.put(new byte[] {1}, new byte[] {1});
                store.administration().flush(() -> false);
            }
            assertThat(List.of(notes, unnumbered, log, table))
                    .allSatisfy(file -> assertThat(file).hasContent("somebody's"));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"somebody's log of a day, longer than the header of one of ours would be", "short", "\n"})
    void withoutAManifestALogThatIsNoneOfOursIsRefusedAndKept(String content, @TempDir Path directory)
            throws Exception {
        Path log = Files.writeString(directory.resolve("20261125.log"), content);
        assertThatThrownBy(() -> LsmStore.open(StoreOptions.at(directory)))
                .isInstanceOf(CorruptionException.class)
                .hasMessageContaining("20261125.log")
                .hasMessageContaining("choose an empty directory");
        assertThat(log).hasContent(content);
        try (Stream<Path> files = Files.list(directory)) {
            assertThat(files).containsExactlyInAnyOrder(log, directory.resolve(FileNames.LOCK));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"somebody's log of a day, longer than the header of one of ours would be", "short", "\n"})
    void besideAManifestALogThatIsNoneOfOursIsRefusedAndKept(String content, @TempDir Path directory) throws Exception {
        try (Store store = LsmStore.open(StoreOptions.at(directory))) {
            store.put(new byte[] {1}, new byte[] {2});
        }
        Path log = Files.writeString(directory.resolve("20261125.log"), content);
        for (int opening = 0; opening < 2; opening++) {
            assertThatThrownBy(() -> LsmStore.open(StoreOptions.at(directory)))
                    .isInstanceOf(CorruptionException.class)
                    .hasMessageContaining("20261125.log")
                    .hasMessageContaining("move it away");
            assertThat(log).hasContent(content);
        }
        Files.delete(log);
        try (Store store = LsmStore.open(StoreOptions.at(directory))) {
            assertThat(store.get(new byte[] {1})).isEqualTo(new byte[] {2});
        }
    }

    /// Until the new manifest is in place the old one may be what the next opening finds.
    @ParameterizedTest
    @EnumSource
    void anOpeningDeletesNothingBeforeItsManifestIsDurable(StoreState state) throws Exception {
        for (WalMode wal : WalMode.values()) {
            FaultyDisk disk = state.make(wal, 1).disk();
            List<String> before = sortedNames(disk);
            disk.setCrash((count, what) -> what.equals("rename MANIFEST"), FaultyDisk.Crash.PROCESS);
            assertThatThrownBy(() -> LsmStore.open(StoreState.options(wal), disk, new Allocator()))
                    .isInstanceOf(StoreException.class);
            assertThat(disk.afterCrash().list(StoreState.DIRECTORY))
                    .containsAll(before.stream()
                            .filter(name -> !name.endsWith(FileNames.TEMPORARY))
                            .toList());
        }
    }

    private static boolean isLeftover(String name, FaultyDisk disk) throws IOException {
        Map<Long, TableMetadata> named = new HashMap<>();
        for (VersionEdit edit :
                Manifest.read(disk, StoreState.DIRECTORY, new Allocator()).edits()) {
            edit.removed().forEach(named::remove);
            edit.added().forEach(table -> named.put(table.number(), table));
        }
        OptionalLong table = FileNames.tableNumber(name);
        return name.endsWith(FileNames.TEMPORARY) || table.isPresent() && !named.containsKey(table.getAsLong());
    }

    private static List<String> leftovers(FaultyDisk disk) throws IOException {
        List<String> leftovers = new ArrayList<>();
        for (String name : disk.list()) {
            if (isLeftover(name, disk)) {
                leftovers.add(name);
            }
        }
        return leftovers;
    }

    /// It takes room, and no opening takes it for a part of the store.
    @ParameterizedTest
    @EnumSource(names = {"IN_THE_MIDDLE_OF_A_FLUSH", "IN_THE_MIDDLE_OF_A_COMPACTION", "INPUTS_NOT_DELETED"})
    void aLeftoverThatCannotBeDeletedRefusesNoStartAndIsTriedAgain(StoreState state) throws Exception {
        StoreState.Made made = state.make(WalMode.ALWAYS, 1);
        StoreOptions options = StoreState.options(WalMode.ALWAYS);
        FaultyDisk disk = made.disk();
        List<String> leftovers = leftovers(disk);
        assertThat(leftovers).isNotEmpty();
        Set<String> refused = ConcurrentHashMap.newKeySet();
        disk.setFaults((count, what) -> {
            boolean fails = what.startsWith("delete ") && leftovers.contains(what.substring("delete ".length()));
            if (fails) {
                refused.add(what);
            }
            return fails;
        });
        LsmStore store = LsmStore.open(options, disk, new Allocator());
        try {
            assertThat(refused).isNotEmpty();
            assertThat(store.isWritable()).isTrue();
            made.history().checkRecovered(store, "a leftover is there");
            disk.setFaults(FaultyDisk.NONE);
            store.put(new byte[] {1}, new byte[] {2});
            store.administration().flush(() -> false); // a change
            Eventually.holds(() -> disk.list().stream().noneMatch(leftovers::contains));
        } finally {
            store.close();
        }
    }

    private static final byte[] VALUE = Records.bytes("v".repeat(1_000));

    private static byte[] withoutItsLastPage(byte[] log) {
        int used = log.length;
        while (log[used - 1] == 0) {
            used--;
        }
        byte[] torn = log.clone();
        Arrays.fill(torn, used - 1_024 & -512, torn.length, (byte) 0);
        return torn;
    }

    /// The sync of the directory fails that is to make its deletion durable, the process is killed, and later the
    /// power fails: it is there again, between logs that do not name it.
    @Test
    void aLogThatAnEarlierOpeningHasDroppedIsNoPartOfTheHistoryWhenItComesBack() {
        StoreOptions options = StoreState.options(WalMode.ALWAYS).toBuilder()
                .frozenMemtablesMax(64)
                .compaction(CompactionPolicyKind.NONE)
                .build();
        FaultyDisk disk = new FaultyDisk();
        FaultyDisk killed = write(options.toBuilder().wal(WalMode.OS).build(), disk, 0, 30);
        List<String> logs =
                killed.list().stream().filter(name -> name.endsWith(".log")).toList();
        byte[] dropped = killed.content(logs.get(1));
        killed.setContent(logs.getFirst(), withoutItsLastPage(killed.content(logs.getFirst())));
        FaultyDisk left = write(options, killed, 30, 33);
        assertThat(left.list()).contains(logs.getFirst()).doesNotContain(logs.get(1));
        left.setContent(logs.get(1), dropped);
        Allocator allocator = new Allocator();
        try (Store store = LsmStore.open(options, left, allocator)) {
            assertThat(store.get(number(0))).isEqualTo(VALUE);
            assertThat(store.get(number(29)))
                    .as("what an earlier opening has dropped")
                    .isNull();
            for (int i = 30; i < 33; i++) {
                assertThat(store.get(number(i))).isEqualTo(VALUE);
            }
            assertThat(left.list()).doesNotContain(logs.get(1));
        }
        assertThat(allocator.allocatedBytes()).isZero();
        assertThat(left.openHandles()).isZero();
    }

    private static byte[] number(int i) {
        return new byte[] {(byte) (i + 1)};
    }

    /// What is left when a store whose memtables nobody flushes was written to and killed.
    private static FaultyDisk write(StoreOptions options, FaultyDisk disk, int from, int to) {
        GatedDisk gate = new GatedDisk(disk);
        gate.hold(GatedDisk.FLUSH);
        LsmStore store = LsmStore.open(options, gate, new Allocator());
        FaultyDisk left;
        try (GatedDisk.Gates gates = gate.openedAtTheEnd()) {
            for (int i = from; i < to; i++) {
                store.put(number(i), VALUE);
            }
            left = disk.killProcess();
        }
        assertThatThrownBy(store::close).isInstanceOf(StoreFailedException.class);
        return left;
    }

    /// The next opening would take its records for a part of the history.
    @Test
    void aWorthlessLogThatCannotBeDeletedRefusesTheStart() {
        FaultyDisk disk = StoreState.UNCLOSED_EMPTY_LOG.make(WalMode.ALWAYS, 1).disk();
        disk.setFaults((count, what) -> what.startsWith("delete ") && what.endsWith(".log"));
        assertThatThrownBy(() -> LsmStore.open(StoreState.options(WalMode.ALWAYS), disk, new Allocator()))
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("planted fault");
        disk.setFaults(FaultyDisk.NONE);
        LsmStore.open(StoreState.options(WalMode.ALWAYS), disk, new Allocator()).close();
    }

    /// An empty log may be deleted; the log after it must not seem to have lost the one before.
    @ParameterizedTest
    @EnumSource(names = "NONE", mode = EnumSource.Mode.EXCLUDE)
    void aLogAfterAnEmptyOneIsReplayedHoweverOftenTheProcessIsKilled(WalMode wal) {
        StoreState.Made made = StoreState.EMPTY_LOG_IN_BETWEEN.make(wal, 1);
        FaultyDisk disk = made.disk();
        for (int opening = 0; opening < 4; opening++) {
            GatedDisk gate = new GatedDisk(disk);
            gate.hold(GatedDisk.FLUSH);
            LsmStore store = LsmStore.open(StoreState.options(wal), gate, new Allocator());
            try (GatedDisk.Gates gates = gate.openedAtTheEnd()) {
                made.history().checkRecovered(store, "opening " + opening);
                assertThat(made.history().size()).isEqualTo(5);
                disk = disk.killProcess();
            }
            assertThatThrownBy(store::close).isInstanceOf(StoreFailedException.class);
        }
    }

    /// The reader of an edit that was never synced must not make the next power loss fatal.
    @Test
    void aManifestIsNotAppendedToAfterAnAppendThatFailed() throws Exception {
        FaultyDisk disk = new FaultyDisk();
        VersionEdit edit = new VersionEdit(1, false, 2, List.of(), List.of());
        try (Manifest manifest = Manifest.replace(disk, StoreState.DIRECTORY, edit)) {
            disk.setFaults((count, what) -> what.startsWith("write") && count == 1);
            assertThatThrownBy(() -> manifest.append(edit)).hasMessageContaining("planted");
            byte[] torn = disk.content(FileNames.MANIFEST);
            assertThatThrownBy(() -> manifest.append(edit)).hasMessageContaining("after an append that failed");
            assertThat(disk.calls()).isEqualTo(1);
            assertThat(disk.content(FileNames.MANIFEST)).isEqualTo(torn);
        }
        assertThat(Manifest.read(disk, StoreState.DIRECTORY, new Allocator()).edits())
                .isEqualTo(List.of(edit));
    }

    /// A flush's edit tears while a compaction is under way: the compaction's edit must not follow it, and takes
    /// its place in another manifest.
    @Test
    void aCompactionReplacesTheManifestThatAFlushHasTorn() throws Exception {
        FaultyDisk real = StoreState.LEVEL_0_FULL.make(WalMode.OS, 3).disk();
        WriteHistory history = StoreState.LEVEL_0_FULL.make(WalMode.OS, 3).history();
        GatedDisk disk = new GatedDisk(real);
        disk.hold("kv-compact");
        StoreOptions options = StoreState.options(WalMode.OS).toBuilder()
                .stallLimit(Duration.ofMillis(200))
                .build();
        LsmStore store = LsmStore.open(options, disk, new Allocator());
        byte[] torn;
        try (GatedDisk.Gates gates = disk.openedAtTheEnd()) {
            disk.awaitHeld();
            history.checkRecovered(store, "before the fault");
            real.setFaults((count, what) ->
                    Thread.currentThread().getName().equals("kv-flush") && what.equals("write MANIFEST.tmp"));
            assertThatThrownBy(() -> {
                        for (int i = 0; i < 10_000; i++) { // one memtable holds far fewer
                            history.add(StoreState.key(i), StoreState.valueOrNull(i));
                            store.begin(StoreState.key(i), StoreState.valueOrNull(i))
                                    .await();
                            history.keepAll();
                        }
                    })
                    .isInstanceOf(WriteStalledException.class);
            torn = real.content(FileNames.MANIFEST);
        }
        Eventually.holds(() -> store.metrics().compactions() > 0);
        assertThat(store.metrics().frozenMemtables()).isPositive();
        assertThat(Manifest.read(real, StoreState.DIRECTORY, new Allocator()).edits())
                .as("edits in the manifest in place of the torn one")
                .hasSizeLessThan(10);
        assertThat(real.content(FileNames.MANIFEST)).isNotEqualTo(torn);
        try (LsmStore again = LsmStore.open(options, real.copy(), new Allocator())) {
            history.checkRecovered(again, "while the flush still fails");
        }
        real.setFaults(FaultyDisk.NONE);
        Eventually.holds(() -> store.metrics().frozenMemtables() == 0);
        store.close();
        try (LsmStore again = LsmStore.open(options, real.killProcess(), new Allocator())) {
            history.checkRecovered(again, "after the fault");
        }
    }
}
