package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import kv.lsm.disk.Disk;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.disk.ForwardingDisk;
import kv.lsm.disk.LogFile;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class WriteStallTest {
    private final GatedDisk disk = new GatedDisk(new FaultyDisk());
    private int written;

    private LsmStore open(Duration limit) {
        return open(disk, limit);
    }

    private static LsmStore open(Disk disk, Duration limit) {
        return LsmStore.open(
                StoreOptions.at(Path.of("/faulty")).toBuilder()
                        .wal(WalMode.OS)
                        .memtableBytes(16 << 10)
                        .frozenMemtablesMax(1)
                        .level0(2, 3, 4)
                        .slowdownBytesPerSecond(1 << 16)
                        .stallLimit(limit)
                        .build(),
                disk,
                new Allocator());
    }

    private void put(Store store) {
        store.put(ByteBuffer.allocate(4).putInt(written).array(), new byte[500]);
        written++;
    }

    private void checkAll(Store store) {
        for (int i = 0; i < written; i++) {
            assertThat(store.get(ByteBuffer.allocate(4).putInt(i).array()))
                    .as("key %d", i)
                    .hasSize(500);
        }
    }

    @Test
    void whoMayNotWaitIsToldAtOnceThatWritersAreStopped() throws Exception {
        try (LsmStore store = open(Duration.ZERO);
                GatedDisk.Gates gates = disk.openedAtTheEnd()) {
            disk.hold(GatedDisk.FLUSH);
            while (store.metrics().frozenMemtables() == 0) {
                tryPut(store); // which is also refused while the next log is not ready
            }
            while (tryPut(store)) {} // or the test does not end
            assertThat(store.get(ByteBuffer.allocate(4).putInt(written).array()))
                    .as("nothing was begun")
                    .isNull();
            Thread waiting = Thread.startVirtualThread(
                    () -> store.begin(ByteBuffer.allocate(4).putInt(written).array(), new byte[500])
                            .await());
            while (waiting.getState() == Thread.State.NEW || waiting.getState() == Thread.State.RUNNABLE) {
                Thread.sleep(1);
            }
            boolean began = tryPut(store);
            disk.letGo(GatedDisk.FLUSH);
            waiting.join();
            assertThat(began).as("while another writer waits").isFalse();
            written++;
            waitForFlush(store);
            while (!tryPut(store)) {
                Thread.sleep(1);
            }
            checkAll(store);
            assertThat(store.metrics().puts()).isEqualTo(written);
        }
    }

    /// Whatever that one does under it: here it closes the store, and syncs the log.
    @Test
    void whoMayNotWaitDoesNotWaitForTheLockOfAnotherWriter() throws Exception {
        LsmStore store = open(Duration.ZERO);
        put(store);
        disk.hold("closer");
        Thread closer = Thread.ofPlatform().name("closer").start(store::close);
        try (GatedDisk.Gates gates = disk.openedAtTheEnd()) {
            disk.awaitHeld();
            CompletableFuture<PendingWrite> tried =
                    CompletableFuture.supplyAsync(() -> store.tryBegin(new byte[] {1}, new byte[500]));
            assertThat(tried.get(1, TimeUnit.MINUTES)).isNull();
        }
        closer.join();
    }

    /// Whether or not they fill memtables meanwhile, whose logs may have higher numbers.
    @ParameterizedTest
    @ValueSource(ints = {1, 100})
    void othersWriteWhileTheLogOfAWriteLargerThanAMemtableIsMade(int puts) throws Exception {
        CountDownLatch isMade = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        FaultyDisk files = new FaultyDisk();
        Disk slow = new ForwardingDisk(files) {
            @Override
            public LogFile createLog(Path file, long bytes, boolean direct, TimeSlices slices) throws IOException {
                if (bytes > 64 << 10) {
                    isMade.countDown();
                    try {
                        goOn.await();
                    } catch (InterruptedException e) {
                        throw new AssertionError(e);
                    }
                }
                return super.createLog(file, bytes, direct, slices);
            }
        };
        byte[] key = {1};
        byte[] large = new byte[100 << 10];
        try (LsmStore store = open(slow, Duration.ZERO)) {
            CompletableFuture<Void> written =
                    CompletableFuture.runAsync(() -> store.put(key, large), Thread::startVirtualThread);
            isMade.await();
            CompletableFuture<Void> others = CompletableFuture.runAsync(
                    () -> {
                        for (int i = 0; i < puts; i++) {
                            put(store);
                        }
                    },
                    Thread::startVirtualThread);
            try {
                others.get(1, TimeUnit.MINUTES);
            } finally {
                goOn.countDown();
            }
            written.get(1, TimeUnit.MINUTES);
            assertThat(store.get(key)).isEqualTo(large);
            checkAll(store);
        }
        try (LsmStore store = open(files, Duration.ZERO)) {
            assertThat(store.get(key)).isEqualTo(large);
            checkAll(store);
        }
    }

    private boolean tryPut(Store store) {
        PendingWrite begun =
                store.tryBegin(ByteBuffer.allocate(4).putInt(written).array(), new byte[500]);
        if (begun == null) {
            return false;
        }
        begun.await();
        written++;
        return true;
    }

    @Test
    void aWriteOverTheLimitFailsWithoutBeingAppliedAndLaterOnesSucceed() throws Exception {
        try (LsmStore store = open(Duration.ofMillis(50));
                GatedDisk.Gates gates = disk.openedAtTheEnd()) {
            disk.hold(GatedDisk.FLUSH);
            assertThatThrownBy(() -> {
                        while (true) {
                            put(store);
                        }
                    })
                    .isInstanceOf(WriteStalledException.class)
                    .hasMessageContaining("cause=frozen_memtables");
            assertThat(store.isWritable()).as("a stall is no failure").isTrue();
            assertThat(store.get(ByteBuffer.allocate(4).putInt(written).array()))
                    .isNull();
            assertThat(store.metrics().stalls().get(StallCause.FROZEN_MEMTABLES).count())
                    .isEqualTo(1);
            disk.letGo(GatedDisk.FLUSH);
            waitForFlush(store);
            put(store);
            checkAll(store);
        }
    }

    private static void waitForFlush(LsmStore store) throws InterruptedException {
        while (store.metrics().frozenMemtables() > 0) {
            Thread.sleep(1);
        }
    }

    @Test
    void aStoppedWriterGoesOnWhenTheFlushIsDone() throws Exception {
        try (LsmStore store = open(Duration.ZERO);
                GatedDisk.Gates gates = disk.openedAtTheEnd()) {
            disk.hold(GatedDisk.FLUSH);
            Thread writer = Thread.ofPlatform().start(() -> {
                for (int i = 0; i < 200; i++) {
                    put(store);
                }
            });
            disk.awaitHeld();
            assertThat(writer.join(Duration.ofMillis(100)))
                    .as("the writer ended though nothing was flushed")
                    .isFalse();
            disk.letGo(GatedDisk.FLUSH);
            writer.join();
            checkAll(store);
            StoreMetrics.Stalls stalls = store.metrics().stalls().get(StallCause.FROZEN_MEMTABLES);
            assertThat(stalls.count()).isPositive();
            assertThat(stalls.nanos()).isPositive();
        }
    }

    @Test
    void writersAreSlowedDownThenStoppedWhenCompactionFallsBehind() throws Exception {
        try (LsmStore store = open(Duration.ofMillis(200));
                GatedDisk.Gates gates = disk.openedAtTheEnd()) {
            disk.hold(GatedDisk.COMPACTION);
            for (StallCause cause = null; cause != StallCause.LEVEL0_STOP; ) { // a flush may take long, too
                try {
                    put(store);
                } catch (WriteStalledException e) {
                    cause = e.stallCause();
                }
            }
            assertThat(store.metrics().stalls().get(StallCause.LEVEL0_SLOWDOWN).count())
                    .isPositive();
            disk.letGo(GatedDisk.COMPACTION);
            checkAll(store);
        }
    }

    @Test
    void aStoppedWriterWaitsForOneCompactionHoweverFarDeepLevelsAreOverTheirTargets() throws Exception {
        StoreOptions.Builder roomy = StoreOptions.at(Path.of("/faulty")).toBuilder()
                .wal(WalMode.OS)
                .memtableBytes(16 << 10)
                .level0(2, 3, 4)
                .slowdownBytesPerSecond(1 << 30)
                .stallLimit(Duration.ZERO);
        StoreOptions tight = roomy.build().toBuilder()
                .level1Bytes(1 << 10)
                .levelMultiplier(2)
                .build();
        fillLevel0(roomy);
        settle(tight); // into one table, which moves down as far as it can
        fillLevel0(roomy);
        settle(roomy.build()); // the same keys in one table of level 1
        fillLevel0(roomy); // more runs than stop writers
        disk.hold(GatedDisk.COMPACTION);
        try (LsmStore store = LsmStore.open(tight, disk, new Allocator());
                GatedDisk.Gates gates = disk.openedAtTheEnd()) {
            Thread writer = Thread.ofPlatform().start(() -> {
                for (int i = 0; i < 40; i++) { // more than a memtable takes, less than it takes to stop writers again
                    put(store);
                }
            });
            disk.awaitHeld();
            disk.letOnePass();
            assertThat(writer.join(Duration.ofSeconds(20)))
                    .as("the writer went on after one compaction")
                    .isTrue();
        }
    }

    /// Writes the same keys as every call before.
    private void fillLevel0(StoreOptions.Builder options) {
        try (LsmStore store = LsmStore.open(
                options.build().toBuilder()
                        .compaction(CompactionPolicyKind.NONE)
                        .build(),
                disk,
                new Allocator())) {
            for (written = 0; written < 300; ) {
                put(store);
            }
            store.administration().flush(() -> false);
            assertThat(store.metrics().levels().getFirst().runs()).isGreaterThan(4);
        }
    }

    private void settle(StoreOptions options) {
        try (LsmStore store = LsmStore.open(options, disk, new Allocator())) {
            assertThat(store.administration().awaitIdle(Duration.ofSeconds(20), () -> false))
                    .isTrue();
        }
    }

    @Test
    void closingEndsTheWaitOfAStoppedWriter() throws Exception {
        LsmStore store = open(Duration.ZERO);
        disk.hold(GatedDisk.FLUSH);
        Throwable[] end = new Throwable[1];
        Thread closer;
        try (GatedDisk.Gates gates = disk.openedAtTheEnd()) {
            Thread writer = Thread.ofPlatform().start(() -> {
                try {
                    while (true) {
                        put(store);
                    }
                } catch (StoreException e) {
                    end[0] = e;
                }
            });
            while (writer.isAlive()
                    && writer.getState() != Thread.State.WAITING
                    && writer.getState() != Thread.State.TIMED_WAITING) {
                Thread.sleep(1);
            }
            closer = Thread.ofPlatform().start(store::close);
            assertThat(writer.join(Duration.ofMinutes(1)))
                    .as("the close ended the writer's wait")
                    .isTrue();
            assertThat(end[0]).isInstanceOf(StoreClosedException.class);
        }
        closer.join();
    }

    /// Or writes that come much later would pay for it.
    @Test
    void whatManyWritersOweIsPaidWithinTheLimit() throws InterruptedException {
        StoreOptions options = StoreOptions.at(Path.of("/faulty")).toBuilder()
                .slowdownBytesPerSecond(1 << 16)
                .stallLimit(Duration.ofMillis(50))
                .build();
        WriteStall stall = new WriteStall(options, new Counters());
        List<Thread> writers = IntStream.range(0, 20)
                .mapToObj(i -> Thread.ofPlatform().start(() -> stall.slowDown(1 << 16))) // a second each
                .toList();
        for (Thread writer : writers) {
            writer.join();
        }
        Thread.sleep(options.stallLimit().multipliedBy(2));
        assertThat(stall.isPaid(1)).isTrue();
    }
}
