package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import kv.Entries;
import kv.InMemory;
import kv.lsm.disk.Disk;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// A name of the store that stands for no file: who opens a pipe waits for ever, and who follows a link may find
/// nothing.
@Timeout(60)
class NoFileTest {
    private static final String LOG_OF_HIGHEST_NUMBER = "000099.log";
    private final List<String> said = new ArrayList<>();
    private final Map<String, String> written = new TreeMap<>();

    @TempDir(factory = InMemory.class)
    private Path directory;

    private Path store() {
        return directory.resolve("store");
    }

    private StoreOptions options() {
        return StoreOptions.at(store()).toBuilder()
                .wal(WalMode.OS)
                .compaction(CompactionPolicyKind.NONE)
                .build();
    }

    /// With two tables and a log that holds a record; the names of the tables.
    private List<String> aStore() throws IOException {
        try (Store store = LsmStore.open(options())) {
            for (int i = 0; i < 3; i++) {
                store.put(("key" + i).getBytes(), ("value" + i).getBytes());
                written.put("key" + i, "value" + i);
                if (i < 2) {
                    store.administration().flush(() -> false);
                }
            }
        }
        return names(store(), ".table");
    }

    private static List<String> names(Path folder, String ending) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString())
                    .filter(name -> name.endsWith(ending))
                    .sorted()
                    .toList();
        }
    }

    private void replaceBy(Disk.Kind kind, String name) throws Exception {
        Path file = store().resolve(name);
        Files.deleteIfExists(file);
        switch (kind) {
            case FILE -> Files.createFile(file);
            case DIRECTORY -> Files.createDirectory(file);
            case BROKEN_LINK -> Files.createSymbolicLink(file, directory.resolve("gone"));
            case SPECIAL -> {
                Process made = new ProcessBuilder("mkfifo", file.toString()).start();
                assertThat(made.waitFor()).isZero();
            }
        }
    }

    private long verify() throws IOException {
        said.clear();
        try (ClosedStore closed = ClosedStore.open(store())) {
            return new StoreVerifier(closed, finding -> said.add(finding.toString())).run();
        }
    }

    /// True when nothing was lost.
    private boolean repair() throws IOException {
        said.clear();
        try (ClosedStore closed = ClosedStore.open(store())) {
            return new StoreRepair(closed, said::add).run();
        }
    }

    private boolean isInLost(String name) {
        return Files.exists(store().resolve("lost").resolve(name), LinkOption.NOFOLLOW_LINKS);
    }

    @ParameterizedTest
    @ValueSource(strings = {"MANIFEST", "MANIFEST.tmp", "REPAIR.tmp", LOG_OF_HIGHEST_NUMBER, "000099.table"})
    void aStartIsRefusedWhereANameOfTheStoreIsAPipeAndRepairMovesItAway(String name) throws Exception {
        aStore();
        replaceBy(Disk.Kind.SPECIAL, name);

        assertThatThrownBy(() -> LsmStore.open(options()))
                .isInstanceOf(CorruptionException.class)
                .hasMessageContaining("no file, but a pipe, a socket or a device")
                .hasMessageContaining("store/" + name);
        assertThat(verify()).isPositive();
        assertThat(said).contains("problem: " + name + ": no file, but a pipe, a socket or a device");
        boolean mayBeALoss = name.equals("MANIFEST") || name.equals(LOG_OF_HIGHEST_NUMBER);
        assertThat(repair()).as("%s", said).isEqualTo(!mayBeALoss);

        assertThat(isInLost(name)).isTrue();
        assertThat(verify()).as("%s", said).isZero();
        assertThat(Entries.of(options())).isEqualTo(written);
    }

    @ParameterizedTest
    @EnumSource(names = "FILE", mode = EnumSource.Mode.EXCLUDE)
    void ofATableThatIsNoFileRepairKeepsTheOthers(Disk.Kind kind) throws Exception {
        String table = aStore().getFirst();
        replaceBy(kind, table);

        assertThatThrownBy(() -> LsmStore.open(options())).hasMessageContaining(kind.toString());
        assertThat(verify()).isPositive();
        assertThat(said).anyMatch(line -> line.startsWith("problem: " + table) && line.contains(kind.toString()));
        assertThat(repair()).isFalse();

        written.remove("key0");
        assertThat(isInLost(table)).isEqualTo(kind != Disk.Kind.DIRECTORY); // that may be somebody's own
        assertThat(Entries.of(options())).isEqualTo(written);
    }

    @Test
    void aDirectoryNamedLikeTheManifestIsMovedAwayWithAllThatItHolds() throws Exception {
        aStore();
        replaceBy(Disk.Kind.DIRECTORY, "MANIFEST");
        Files.createFile(store().resolve("MANIFEST").resolve("own"));

        assertThatThrownBy(() -> LsmStore.open(options())).hasMessageContaining("no file, but a directory");
        assertThat(repair()).isFalse();

        assertThat(store().resolve("lost/MANIFEST/own")).exists();
        assertThat(Entries.of(options())).isEqualTo(written);
    }

    @Test
    void aLockThatIsAPipeIsNotWaitedFor() throws Exception {
        aStore();
        replaceBy(Disk.Kind.SPECIAL, "LOCK");

        assertThatThrownBy(() -> LsmStore.open(options())).hasMessageContaining("the lock is no file");
        assertThatThrownBy(this::verify).hasMessageContaining("the lock is no file");
    }

    @Test
    void aTableThatALinkLeadsToIsLinkedByACheckpointAndKeptByARepair() throws Exception {
        String table = aStore().getFirst();
        Path elsewhere = Files.createDirectory(directory.resolve("elsewhere")).resolve(table);
        Files.move(store().resolve(table), elsewhere);
        Files.createSymbolicLink(store().resolve(table), Path.of("../elsewhere/" + table));
        Path checkpoint = directory.resolve("checkpoint");
        try (Store store = LsmStore.open(options())) {
            store.administration().checkpoint(checkpoint, () -> false);
        }
        byte[] content = Files.readAllBytes(elsewhere);
        content[content.length - 1] ^= 1;
        Files.write(store().resolve(table), content);

        assertThat(Files.isRegularFile(checkpoint.resolve(table), LinkOption.NOFOLLOW_LINKS))
                .isTrue();
        repair();
        assertThat(store().resolve("lost").resolve(table)).hasBinaryContent(content);
    }

    @Test
    void repairGivesNoTableTheNumberOfADirectory() throws Exception {
        String table = aStore().getFirst();
        long highest = 0;
        for (String name : names(store(), "")) {
            highest = Math.max(highest, FileNames.number(name).orElse(0));
        }
        for (long number = highest + 1; number < highest + 10; number++) {
            Files.createDirectories(store().resolve(FileNames.table(number)).resolve("own"));
        }
        Files.delete(store().resolve(table));

        assertThat(repair()).isFalse();
        written.remove("key0");
        assertThat(Entries.of(options())).isEqualTo(written);
    }
}
