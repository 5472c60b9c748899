package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.function.BooleanSupplier;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// What cursors keep alive is counted and let go when they are closed; background work keeps no more than it
/// reads.
class PinnedMemoryTest {
    private static final int KEYS = 500;

    private final GatedDisk disk = new GatedDisk(new FaultyDisk());

    private LsmStore open() {
        return LsmStore.open(
                StoreOptions.at(Path.of("/faulty")).toBuilder()
                        .wal(WalMode.OS)
                        .memtableBytes(16 << 10)
                        .level0(2, 200, 300)
                        .build(),
                disk,
                new Allocator());
    }

    private static byte[] key(int number) {
        return ByteBuffer.allocate(4).putInt(number).array();
    }

    private static void overwrite(Store store) {
        for (int i = 0; i < KEYS; i++) {
            store.put(key(i), new byte[200]);
        }
    }

    private static void eventually(BooleanSupplier condition) throws InterruptedException {
        for (int tries = 0; !condition.getAsBoolean(); tries++) {
            assertThat(tries).as("tries of 1 ms").isLessThan(20_000);
            Thread.sleep(1);
        }
    }

    @Test
    void whatACursorKeepsIsCountedUntilItIsClosed() throws Exception {
        try (LsmStore store = open()) {
            overwrite(store);
            try (RangeCursor cursor = store.range(key(0), null)) {
                assertThat(cursor.next()).isTrue();
                for (int round = 0; round < 5; round++) {
                    overwrite(store);
                }
                eventually(() -> store.metrics().pinnedBytes() > KEYS * 200L);
                int entries = 1;
                while (cursor.next()) {
                    entries++;
                }
                assertThat(entries)
                        .as("the cursor sees what there was when it was opened")
                        .isEqualTo(KEYS);
            }
            eventually(() -> store.metrics().pinnedBytes() == 0);
        }
    }

    @ParameterizedTest
    @EnumSource(WalMode.class)
    void memoryThatIsFreedWhenACursorIsClosedWasCountedWhereverTheRecordsWere(WalMode wal) throws Exception {
        StoreOptions options = StoreOptions.at(Path.of("/faulty")).toBuilder()
                .wal(wal)
                .memtableBytes(1 << 20)
                .compaction(CompactionPolicyKind.NONE)
                .build();
        Allocator allocator = new Allocator();
        try (LsmStore store = LsmStore.open(options, disk, allocator)) {
            store.put(key(0), new byte[4000]);
            long pinned;
            long held;
            try (RangeCursor cursor = store.range(key(0), null)) {
                for (int i = 0; i < KEYS; i++) {
                    store.put(key(i), new byte[4000]);
                }
                eventually(
                        () -> store.metrics().flushes() > 0 && store.metrics().frozenMemtables() == 0);
                assertThat(cursor.next()).isTrue();
                pinned = store.metrics().pinnedBytes();
                held = allocator.allocatedBytes();
            }
            eventually(() -> store.metrics().pinnedBytes() == 0);
            long freed = held - allocator.allocatedBytes();
            assertThat(pinned).isGreaterThan(1 << 20).isGreaterThanOrEqualTo(freed - (64 << 10));
        }
    }

    @Test
    void aCompactionKeepsNoMemtable() throws Exception {
        try (LsmStore store = open()) {
            disk.hold(GatedDisk.COMPACTION);
            overwrite(store);
            overwrite(store);
            disk.awaitHeld();
            try {
                for (int round = 0; round < 3; round++) {
                    overwrite(store);
                    eventually(() -> store.metrics().frozenMemtables() == 0);
                }
                eventually(() -> store.metrics().pinnedBytes() == 0);
            } finally {
                disk.letGo(GatedDisk.COMPACTION);
            }
        }
    }

    @Test
    void aStepOverDeletedEntriesEndsWhereItWasToldTo() {
        try (LsmStore store = open();
                GatedDisk.Gates gates = disk.openedAtTheEnd()) {
            overwrite(store);
            disk.hold(GatedDisk.COMPACTION); // it would drop deleted entries
            for (int i = 0; i < KEYS - 1; i++) {
                store.delete(key(i));
            }
            try (RangeCursor cursor = store.range(key(0), null)) {
                int steps = 1;
                while (cursor.step(10) == RangeCursor.Step.NOT_YET) {
                    assertThat(cursor.recordsPassed()).isEqualTo(10L * steps);
                    steps++;
                }
                assertThat(steps).isEqualTo((KEYS - 1) / 10 + 1);
                assertThat(cursor.key()).isEqualTo(key(KEYS - 1));
                assertThat(cursor.valueLength()).isEqualTo(200);
                byte[] part = new byte[10];
                cursor.copyValue(195, part, 2, 5);
                assertThat(cursor.step(10)).isEqualTo(RangeCursor.Step.END);
            }
        }
    }
}
