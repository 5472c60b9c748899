package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.FutureTask;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// What each mode of the write-ahead log promises while all goes well; what it promises in a crash is
/// [CrashTest]'s.
class WalModeTest {
    @TempDir
    Path directory;

    private StoreOptions.Builder options() {
        return StoreOptions.at(directory).toBuilder().memtableBytes(64 << 10);
    }

    private static byte[] bytes(String text) {
        return Records.bytes(text);
    }

    @ParameterizedTest
    @EnumSource
    void whatWasClosedInOrderIsThereAfterwardsInEveryLogMode(WalMode wal) {
        try (Store store = LsmStore.open(options().wal(wal).build())) {
            store.put(bytes("a"), bytes("1"));
            store.put(bytes("b"), bytes("2"));
            store.put(bytes("a"), bytes("3"));
            store.delete(bytes("b"));
            store.put(bytes("empty"), new byte[0]);
        }
        try (Store store = LsmStore.open(options().wal(wal).build())) {
            assertThat(store.get(bytes("a"))).isEqualTo(bytes("3"));
            assertThat(store.get(bytes("b"))).isNull();
            assertThat(store.get(bytes("empty"))).isEmpty();
            assertThat(store.get(bytes("c"))).isNull();
            assertThat(store.metrics().recovery().droppedBytes()).isZero();
        }
    }

    @Test
    void anIntervalSyncMakesWritesDurableWithoutAClose() throws Exception {
        FaultyDisk disk = new FaultyDisk();
        LsmStore store = LsmStore.open(
                options()
                        .wal(WalMode.INTERVAL)
                        .walInterval(Duration.ofMillis(1))
                        .build(),
                disk,
                new Allocator());
        long before = store.metrics().walSyncs();
        store.put(bytes("a"), bytes("1"));
        // the first sync after it may have begun before it, and there is one only when there is something to
        // sync
        while (store.metrics().walSyncs() < before + 2) {
            store.put(bytes("b"), bytes("2"));
            Thread.sleep(1);
        }
        FaultyDisk after = disk.losePower(new SplittableRandom(1));
        try (Store again = LsmStore.open(options().build(), after, new Allocator())) {
            assertThat(again.get(bytes("a"))).isEqualTo(bytes("1"));
        }
        // the write, or the close after it: whichever comes first after the sync that failed
        assertThatThrownBy(() -> {
                    try (store) {
                        store.put(bytes("c"), bytes("3"));
                    }
                })
                .isInstanceOf(StoreFailedException.class);
    }

    @Test
    void writesThatAreBegunAreUnseenUntilOneSyncForAllOfThem() {
        try (Store store = LsmStore.open(options().wal(WalMode.ALWAYS).build())) {
            assertThat(store.writesWaitForDisk()).isTrue();
            store.put(bytes("c"), bytes("3"));
            long syncs = store.metrics().walSyncs();
            PendingWrite first = store.begin(bytes("a"), bytes("1"));
            PendingWrite second = store.begin(bytes("b"), bytes("2"));
            PendingWrite third = store.begin(bytes("c"), null);
            assertThat(store.get(bytes("a"))).isNull();
            assertThat(store.get(bytes("c"))).isEqualTo(bytes("3"));
            second.await();
            assertThat(store.get(bytes("a"))).isEqualTo(bytes("1"));
            assertThat(store.get(bytes("c"))).isNull();
            assertThat(store.metrics().puts()).isEqualTo(2);
            third.await();
            first.await();
            assertThat(store.metrics().walSyncs()).isEqualTo(syncs + 1);
            assertThat(store.metrics().puts()).isEqualTo(3);
            assertThat(store.metrics().deletes()).isEqualTo(1);
        }
    }

    @ParameterizedTest
    @EnumSource
    void aWriteThatIsBegunAndNeverAwaitedHoldsNothingUp(WalMode wal) {
        try (Store store = LsmStore.open(options().wal(wal).build())) {
            byte[] value = new byte[1 << 10];
            for (int i = 0; i < 200; i++) { // memtables of 64 KiB: some are flushed meanwhile
                store.begin(bytes("k" + i), value);
            }
            store.put(bytes("last"), value);
            assertThat(store.get(bytes("k0"))).isEqualTo(value);
            assertThat(store.get(bytes("k199"))).isEqualTo(value);
        }
    }

    @Test
    void waitingWritersShareASync() throws Exception {
        int threads = 8;
        int each = 50;
        GatedDisk disk = new GatedDisk(new FaultyDisk());
        disk.slowSyncs(5);
        StoreOptions options = StoreOptions.at(Path.of("/faulty")).toBuilder()
                .memtableBytes(4 << 20)
                .wal(WalMode.ALWAYS)
                .build();
        try (Store store = LsmStore.open(options, disk, new Allocator())) {
            List<FutureTask<Void>> writers = new ArrayList<>();
            for (int t = 0; t < threads; t++) {
                String prefix = "t" + t + "-";
                FutureTask<Void> writer = new FutureTask<>(() -> {
                    for (int i = 0; i < each; i++) {
                        store.put(bytes(prefix + i), bytes("v"));
                        assertThat(store.get(bytes(prefix + i))).isEqualTo(bytes("v"));
                    }
                    return null;
                });
                Thread.ofVirtual().start(writer);
                writers.add(writer);
            }
            for (FutureTask<Void> writer : writers) {
                writer.get(); // or throws what it met
            }
            assertThat(store.metrics().puts()).isEqualTo(threads * each);
            assertThat(store.metrics().walSyncs()).isLessThan(threads * each * 3L / 4);
            for (int t = 0; t < threads; t++) {
                for (int i = 0; i < each; i++) {
                    assertThat(store.get(bytes("t" + t + "-" + i))).isEqualTo(bytes("v"));
                }
            }
        }
    }
}
