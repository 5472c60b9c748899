package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import kv.Eventually;
import kv.lsm.disk.ForgetfulFiles;
import kv.lsm.disk.RealDisk;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A store that would fit into memory and is not there, as after a start of the machine.
class WarmingTest {
    private static final int RECORDS = 20_000;

    @TempDir
    Path directory;

    private Store opened() {
        return LsmStore.open(StoreOptions.at(directory).toBuilder()
                .memtableBytes(1 << 20)
                .tableBytes(256 << 10)
                .build());
    }

    private static byte[] key(int i) {
        return Records.bytes("key-%06d".formatted(i));
    }

    private void forgetTables() throws IOException {
        RealDisk disk = new RealDisk(new Allocator());
        try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, "*.table")) {
            files.forEach(disk::dropCached);
        }
    }

    @Test
    void getsMissPagesUntilTheTablesWereBroughtIn() throws Exception {
        ForgetfulFiles.assumeIn(directory);
        try (Store store = opened()) {
            for (int i = 0; i < RECORDS; i++) {
                store.put(key(i), Records.bytes("value of %d, forty bytes of it or more".formatted(i)));
            }
            store.administration().flush(() -> false);
        }
        forgetTables();
        try (Store store = opened()) {
            assertThat(store.readsWaitForDisk())
                    .as("nobody knows what is in memory")
                    .isTrue();
            int[] waits = new int[1];
            for (int i = 0; i < RECORDS; i++) { // and reads none of them, so that nobody but the store brings them in
                waits[0] += store.tryGet(key(i)) == Store.WOULD_WAIT ? 1 : 0;
            }
            assertThat(waits[0]).isPositive();
            Eventually.holds(() -> {
                for (int i = 0; i < RECORDS; i++) {
                    if (store.tryGet(key(i)) == Store.WOULD_WAIT) {
                        return false;
                    }
                }
                return true;
            });
        }
    }
}
