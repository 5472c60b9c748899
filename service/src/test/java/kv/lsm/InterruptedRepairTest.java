package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.Stream;
import kv.Entries;
import kv.lsm.disk.Disk;
import kv.lsm.disk.ForwardingDisk;
import kv.lsm.disk.RealDisk;
import kv.lsm.disk.WriteFile;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A repair that is cut off at any of its calls that change something, and run again, keeps what one that went
/// through keeps.
class InterruptedRepairTest {
    private static final int KEYS = 60;
    private static final int ROUNDS = 4;
    private static final int IN_THE_FIRST_BLOCK = 100;

    @TempDir
    private Path directory;

    /// From one call on nothing changes any more: the process has died.
    private static final class DyingDisk extends ForwardingDisk {
        private int callsLeft;

        DyingDisk(Disk disk, int callsLeft) {
            super(disk);
            this.callsLeft = callsLeft;
        }

        private void spend() throws IOException {
            if (callsLeft-- <= 0) {
                throw new IOException("the process has died");
            }
        }

        @Override
        public WriteFile create(Path file) throws IOException {
            spend();
            return super.create(file);
        }

        @Override
        public void rename(Path from, Path to) throws IOException {
            spend();
            super.rename(from, to);
        }

        @Override
        public void delete(Path file) throws IOException {
            spend();
            super.delete(file);
        }

        @Override
        public void syncDirectory(Path where) throws IOException {
            spend();
            super.syncDirectory(where);
        }
    }

    private static StoreOptions options(Path where) {
        return StoreOptions.at(where).toBuilder()
                .wal(WalMode.OS)
                .blockBytes(512)
                .memtableBytes(64 << 10)
                .compaction(CompactionPolicyKind.NONE)
                .build();
    }

    /// Four tables and a log, each with another value of every key; a block of the oldest table is damaged.
    private Path damagedStore() throws IOException {
        Path original = directory.resolve("original");
        Path killed = directory.resolve("killed");
        try (Store store = LsmStore.open(options(original))) {
            for (int round = 0; round <= ROUNDS; round++) {
                for (int key = round; key < KEYS; key++) {
                    store.put(("key-" + key).getBytes(), ("round " + round + " of key " + key).getBytes());
                }
                if (round < ROUNDS) {
                    store.administration().flush(() -> false);
                }
            }
            copy(original, killed);
        }
        Path oldest;
        try (Stream<Path> files = Files.list(killed)) {
            oldest = files.filter(file -> file.toString().endsWith(".table"))
                    .min(Path::compareTo)
                    .orElseThrow();
        }
        byte[] content = Files.readAllBytes(oldest);
        content[IN_THE_FIRST_BLOCK] ^= 1;
        Files.write(oldest, content);
        return killed;
    }

    private static void copy(Path from, Path to) throws IOException {
        Files.createDirectory(to);
        try (Stream<Path> files = Files.list(from)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                try {
                    Files.copy(file, to.resolve(file.getFileName()));
                } catch (NoSuchFileException deleted) {
                    // a log whose table is part of the store by now
                }
            }
        }
    }

    private static void repair(Path store, int calls) throws IOException {
        Allocator allocator = new Allocator();
        Disk disk = new DyingDisk(new RealDisk(allocator), calls);
        try (ClosedStore closed = ClosedStore.open(store, disk, allocator)) {
            new StoreRepair(closed, line -> {}).run();
        }
    }

    private static Map<String, String> entries(Path store) {
        return Entries.of(options(store));
    }

    private static boolean isCutOff(Path store, int calls) {
        try {
            repair(store, calls);
            return false;
        } catch (IOException e) {
            return true;
        }
    }

    private enum ManifestIs {
        WHOLE,
        MISSING,
        WITHOUT_ITS_LAST_EDIT
    }

    private static void cutLastEdit(Path store) throws IOException {
        int offset;
        try (ClosedStore closed = ClosedStore.open(store)) {
            offset = ManifestInspection.of(closed).offsets().getLast();
        }
        Path manifest = store.resolve(FileNames.MANIFEST);
        Files.write(manifest, Arrays.copyOf(Files.readAllBytes(manifest), offset));
    }

    @ParameterizedTest
    @EnumSource
    void runAgainItKeepsWhatOneThatWentThroughKeeps(ManifestIs manifest) throws IOException {
        Path store = damagedStore();
        switch (manifest) {
            case WHOLE -> {}
            case MISSING -> Files.delete(store.resolve(FileNames.MANIFEST));
            case WITHOUT_ITS_LAST_EDIT -> cutLastEdit(store);
        }
        Path whole = directory.resolve("whole");
        copy(store, whole);
        repair(whole, Integer.MAX_VALUE);
        Map<String, String> expected = entries(whole);
        assertThat(expected).containsEntry("key-" + (KEYS - 1), "round " + ROUNDS + " of key " + (KEYS - 1));
        int calls = 0;
        for (boolean isCutOff = true; isCutOff; calls++) {
            Path copy = directory.resolve("cut-off-" + calls);
            copy(store, copy);
            int at = calls;
            isCutOff = isCutOff(copy, at);
            isCutOff(copy, at / 2);
            repair(copy, Integer.MAX_VALUE);
            assertThat(entries(copy)).as("cut off at call %d", calls).isEqualTo(expected);
        }
        assertThat(calls).isGreaterThan(10);
    }
}
