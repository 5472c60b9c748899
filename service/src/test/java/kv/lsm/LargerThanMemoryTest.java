package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import kv.Eventually;
import kv.lsm.disk.ForgetfulFiles;
import kv.lsm.disk.MajorFaults;
import kv.lsm.disk.ReadFile;
import kv.lsm.disk.RealDisk;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A store on real files that is told to have next to no memory for its tables.
class LargerThanMemoryTest {
    private static final int RECORDS = 20_000;
    private static final int ATTEMPTS_MAX = 100;

    @TempDir
    Path directory;

    private Store opened(long tableMemoryBytes) {
        return LsmStore.open(StoreOptions.at(directory).toBuilder()
                .memtableBytes(256 << 10)
                .tableBytes(128 << 10)
                .level1Bytes(256 << 10)
                .tableMemoryBytes(tableMemoryBytes)
                .build());
    }

    private static byte[] key(int i) {
        return Records.bytes("key-%06d".formatted(i * 7919 % RECORDS));
    }

    private static byte[] value(int i) {
        return Records.bytes("value of %06d, some forty bytes of it".formatted(i * 7919 % RECORDS));
    }

    private static void fill(Store store) {
        for (int i = 0; i < RECORDS; i++) {
            store.put(key(i), value(i));
        }
        store.administration().flush(() -> false);
        store.administration().compact(() -> false);
    }

    /// What compaction has written is not kept in memory, so that the first GETs find it on the disk alone.
    @Test
    void getsThatWouldWaitSayAsMuchAndThenFindTheirValues() throws Exception {
        ForgetfulFiles.assumeIn(directory);
        try (Store store = opened(1)) {
            fill(store);
            assertThat(store.readsWaitForDisk()).isTrue();
            int waits = 0;
            for (int i = 0; i < RECORDS; i++) {
                byte[] value = store.tryGet(key(i));
                if (value == Store.WOULD_WAIT) {
                    waits++;
                    value = store.get(key(i));
                }
                assertThat(value).isEqualTo(value(i));
            }
            assertThat(waits).isPositive();
            assertThat(store.metrics().coldGets()).isEqualTo(waits);
            assertThat(store.metrics().gets()).isEqualTo(RECORDS);
            for (int i = 0; i < RECORDS; i++) { // and now they are in memory
                assertThat(foundInMemory(store, i)).isEqualTo(value(i));
            }
        }
    }

    /// What was read is read again where the system, which others want memory of, has taken it since.
    private static byte[] foundInMemory(Store store, int i) {
        byte[][] found = {store.tryGet(key(i))};
        Eventually.holds(() -> {
            if (found[0] == Store.WOULD_WAIT) {
                store.get(key(i));
                found[0] = store.tryGet(key(i));
            }
            return found[0] != Store.WOULD_WAIT;
        });
        return found[0];
    }

    /// Of whatever thread: what a worker missed tells that the tables are cold, too.
    @Test
    void readsOfThreadsThatMayWaitAreCounted() throws Exception {
        ForgetfulFiles.assumeIn(directory);
        try (Store store = opened(1)) {
            fill(store);
            for (int i = 0; i < RECORDS; i++) {
                assertThat(store.get(key(i))).isEqualTo(value(i));
            }
            assertThat(store.metrics().coldGets()).isZero();
            assertThat(store.metrics().diskReads()).isPositive();
        }
    }

    /// A thread of Java that waits in a fault holds up the collector. Those of other threads are not this test's: the
    /// system may have taken pages of the JVM from memory.
    @Test
    void tablesAreOpenedAndReadWithoutFaultsThatWaitForTheDisk() throws Exception {
        ForgetfulFiles.assumeIn(directory);
        assumeTrue(MajorFaults.ofThreadOrNull() != null, "nobody can tell here");
        try (Store store = opened(1)) {
            fill(store);
        }
        RealDisk disk = new RealDisk(new Allocator());
        try (DirectoryStream<Path> tables = Files.newDirectoryStream(directory, "*.table")) {
            tables.forEach(disk::dropCached);
        }
        long before = MajorFaults.ofThreadOrNull().count();
        try (Store store = opened(1)) {
            for (int i = 0; i < RECORDS; i++) {
                assertThat(store.get(key(i))).isEqualTo(value(i));
            }
        }
        assertThat(MajorFaults.ofThreadOrNull().count() - before)
                .as("major faults, those of the JVM's own pages included")
                .isLessThan(20);
    }

    /// One page in the middle is missing, and none that leads to it.
    @Test
    void aLongValueIsNotReadByWhoMayNotWaitUntilAllItsPagesAreThere() throws Exception {
        ForgetfulFiles.assumeIn(directory);
        byte[] value = new byte[1 << 20];
        new SplittableRandom(1).nextBytes(value);
        RealDisk disk = new RealDisk(new Allocator());
        try (Store store = opened(1)) {
            store.put(key(0), value);
            store.administration().flush(() -> false);
            Path table = onlyTable();
            disk.dropCached(table);
            assertThat(store.get(key(0))).isEqualTo(value); // by calls, which map no page, and its block is checked
            boolean isOneMissing = false;
            for (int i = 0; i < ATTEMPTS_MAX && !isOneMissing; i++) {
                disk.dropCached(table);
                try (ReadFile file = disk.open(table)) {
                    isOneMissing = findsTheValueWhenTheLastPageCame(store, file, value);
                }
            }
            assumeTrue(isOneMissing, "the page was brought in with others");
        }
    }

    /// False when the page in the middle was not missing, as where the system did not forget it.
    private static boolean findsTheValueWhenTheLastPageCame(Store store, ReadFile file, byte[] value)
            throws IOException {
        long address = file.map();
        file.expectRandomReads(file.bytes(), true);
        long missing = file.bytes() / 2 & -Allocator.PAGE_BYTES;
        bringInAllBut(missing, file, address);
        if (file.isCached(missing, 1)) {
            return false;
        }
        assertThat(store.tryGet(key(0))).isSameAs(Store.WOULD_WAIT);
        Eventually.holds(() -> {
            bringInAllBut(file.bytes(), file, address);
            return store.tryGet(key(0)) != Store.WOULD_WAIT;
        });
        assertThat(store.get(key(0))).isEqualTo(value);
        return true;
    }

    private static void bringInAllBut(long page, ReadFile file, long address) {
        for (long at = 0; at < file.bytes(); at += Allocator.PAGE_BYTES) {
            if (at != page) {
                bringIn(address + at);
            }
        }
    }

    private static void bringIn(long address) {
        assertThat(Memory.getByte(address)).isBetween(Byte.MIN_VALUE, Byte.MAX_VALUE);
    }

    private Path onlyTable() throws IOException {
        try (DirectoryStream<Path> tables = Files.newDirectoryStream(directory, "*.table")) {
            return tables.iterator().next();
        }
    }

    @Test
    void tablesThatFitAreReadWithoutAsking() {
        try (Store store = opened(1 << 30)) {
            fill(store);
            assertThat(store.readsWaitForDisk()).isFalse();
            for (int i = 0; i < RECORDS; i++) {
                assertThat(store.tryGet(key(i))).isEqualTo(value(i));
            }
            assertThat(store.metrics().coldGets()).isZero();
        }
    }

    @Test
    void aRangeReadsTheSameThroughBuffers() {
        try (Store store = opened(1)) {
            fill(store);
            try (RangeCursor cursor = store.range(new byte[0], null)) {
                int count = 0;
                for (; cursor.next(); count++) {
                    assertThat(cursor.key()).isEqualTo(Records.bytes("key-%06d".formatted(count)));
                }
                assertThat(count).isEqualTo(RECORDS);
            }
        }
    }
}
