package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import kv.Eventually;
import kv.lsm.disk.Disk;
import kv.lsm.disk.ForwardingDisk;
import kv.lsm.disk.LogFile;
import kv.lsm.disk.RealDisk;
import kv.lsm.memory.Allocator;
import org.assertj.core.api.AbstractThrowableAssert;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class AdministrationTest {
    private static final BooleanSupplier PATIENT = () -> false;
    private static final Duration LONG = Duration.ofSeconds(60);

    @TempDir
    private Path directory;

    private final Model model = new Model();

    private StoreOptions.Builder options() {
        return StoreOptions.at(directory.resolve("store")).toBuilder()
                .memtableBytes(64 << 10)
                .tableBytes(32 << 10)
                .level1Bytes(64 << 10)
                .levelMultiplier(2);
    }

    private static byte[] key(int i) {
        return Records.bytes("key-%06d".formatted(i));
    }

    private void write(Store store, int count, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        for (int i = 0; i < count; i++) {
            byte[] key = key(random.nextInt(2_000));
            if (random.nextInt(4) == 0) {
                store.delete(key);
                model.delete(key);
            } else {
                byte[] value = new byte[random.nextInt(200)];
                random.nextBytes(value);
                store.put(key, value);
                model.put(key, value);
            }
        }
    }

    private static long tables(Store store) {
        return store.metrics().levels().stream()
                .mapToLong(StoreMetrics.Level::tables)
                .sum();
    }

    @ParameterizedTest
    @EnumSource
    void aFlushBringsEveryWriteIntoTables(WalMode wal) {
        try (Store store = LsmStore.open(
                options().wal(wal).compaction(CompactionPolicyKind.NONE).build())) {
            store.administration().flush(PATIENT);
            assertThat(tables(store)).as("an empty store needs no table").isZero();
            store.put(key(1), key(2));
            store.administration().flush(PATIENT);
            assertThat(store.metrics().frozenMemtables()).isZero();
            assertThat(tables(store)).isEqualTo(1);
            store.administration().flush(PATIENT);
            assertThat(tables(store)).as("a second flush has nothing to do").isEqualTo(1);
            assertThat(store.get(key(1))).isEqualTo(key(2));
        }
    }

    /// Who makes it holds the lock of writers meanwhile, which with 64 MiB that are synced takes seconds.
    @ParameterizedTest
    @EnumSource(names = "NONE", mode = EnumSource.Mode.EXCLUDE)
    void aFlushHasItsLogMadeByTheThreadThatMakesThemForWriters(WalMode wal) {
        Allocator allocator = new Allocator();
        List<String> makers = new CopyOnWriteArrayList<>();
        Disk disk = new ForwardingDisk(new RealDisk(allocator)) {
            @Override
            public LogFile createLog(Path file, long bytes, boolean direct, TimeSlices slices) throws IOException {
                makers.add(Thread.currentThread().getName());
                return super.createLog(file, bytes, direct, slices);
            }
        };
        try (Store store = LsmStore.open(options().wal(wal).build(), disk, allocator)) {
            makers.clear();
            store.put(key(1), key(2));
            store.administration().flush(PATIENT);
            assertThat(tables(store)).isEqualTo(1);
            assertThat(makers).isNotEmpty().containsOnly("kv-flush");
        }
    }

    @ParameterizedTest
    @EnumSource
    void aCompactionLeavesOneRunWithoutTombstonesThatThePolicyLeavesAlone(CompactionPolicyKind policy) {
        try (LsmStore store = (LsmStore)
                LsmStore.open(options().wal(WalMode.OS).compaction(policy).build())) {
            write(store, 6_000, 1);
            store.administration().compact(PATIENT);
            assertThat(store.metrics().levels()).hasSize(1);
            assertThat(store.metrics().levels().getFirst().runs()).isEqualTo(1);
            long compactions = store.metrics().compactions();
            assertThat(store.administration().awaitIdle(LONG, PATIENT)).isTrue();
            assertThat(store.metrics().compactions()).isEqualTo(compactions);
            model.checkAll(store);
            store.administration().compact(PATIENT);
            assertThat(store.metrics().compactions())
                    .as("nothing is left to merge")
                    .isEqualTo(compactions);
            model.entries().keySet().forEach(store::delete);
            model.entries().clear();
            store.administration().compact(PATIENT);
            assertThat(tables(store)).as("tombstones are dropped, the last too").isZero();
            model.checkAll(store);
        }
    }

    @Test
    void idleMeansThatNothingHappensAnyMore() {
        try (Store store =
                LsmStore.open(options().wal(WalMode.OS).level0(2, 8, 16).build())) {
            for (int round = 0; round < 5; round++) {
                write(store, 3_000, round);
                assertThat(store.administration().awaitIdle(LONG, PATIENT)).isTrue();
                StoreMetrics idle = store.metrics();
                assertThat(idle.frozenMemtables()).isZero();
                model.checkGet(store, key(round));
                StoreMetrics later = store.metrics();
                assertThat(later.flushes()).isEqualTo(idle.flushes());
                assertThat(later.compactions()).isEqualTo(idle.compactions());
                assertThat(later.levels()).isEqualTo(idle.levels());
            }
        }
    }

    @Test
    void closingEndsAWaitForACompaction() throws InterruptedException {
        Store store = LsmStore.open(options()
                .wal(WalMode.OS)
                .level0(2, 100, 200)
                .compactionBytesPerSecond(1 << 10)
                .build());
        write(store, 6_000, 3);
        AtomicInteger asked = new AtomicInteger();
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        Thread waiter = Thread.ofPlatform().start(() -> {
            try {
                store.administration().compact(() -> asked.incrementAndGet() < 0);
            } catch (RuntimeException e) {
                thrown.set(e);
            }
        });
        Eventually.holds(() -> asked.get() > 10);
        store.close();
        waiter.join(60_000);
        assertThat(waiter.isAlive()).isFalse();
        assertThat(thrown.get()).isInstanceOf(StoreClosedException.class);
    }

    @Test
    void whatTakesTooLongSaysSoAndAStopEndsTheWait() {
        StoreOptions slow = options()
                .wal(WalMode.OS)
                .level0(2, 100, 200)
                .compactionBytesPerSecond(1 << 10)
                .build();
        try (Store store = LsmStore.open(slow)) {
            write(store, 6_000, 3);
            store.administration().flush(PATIENT);
            assertThat(store.administration().awaitIdle(Duration.ofMillis(20), PATIENT))
                    .isFalse();
            AtomicInteger asked = new AtomicInteger();
            assertThatThrownBy(() -> store.administration().compact(() -> asked.incrementAndGet() > 10))
                    .isInstanceOf(StoreClosedException.class);
        }
    }

    @Test
    void aCheckpointOpensAsAStoreWithWhatWasWrittenBeforeIt() throws IOException {
        Path checkpoint = directory.resolve("checkpoint");
        try (Store store = LsmStore.open(options().build())) {
            write(store, 5_000, 4);
            store.administration().checkpoint(checkpoint, PATIENT);
            store.put(key(1), key(99));
            try (Store copy = LsmStore.open(StoreOptions.at(checkpoint))) {
                model.checkAll(copy);
                copy.put(key(2), key(98)); // each goes its own way
                copy.administration().compact(PATIENT);
            }
            model.put(key(1), key(99));
            store.administration().compact(PATIENT);
            model.checkAll(store);
        }
        try (Store again = LsmStore.open(options().build())) {
            model.checkAll(again);
        }
        try (Store copy = LsmStore.open(StoreOptions.at(checkpoint))) {
            assertThat(copy.get(key(2))).isEqualTo(key(98));
        }
    }

    /// First the tables' names, then the manifest that names them, then the checkpoint's own name.
    @Test
    void aCheckpointIsDurableWhenItIsAnswered() {
        Path checkpoint = directory.resolve("checkpoint");
        List<String> calls = new CopyOnWriteArrayList<>();
        Allocator allocator = new Allocator();
        Disk disk = new ForwardingDisk(new RealDisk(allocator)) {
            @Override
            public void rename(Path from, Path to) throws IOException {
                super.rename(from, to);
                calls.add("rename " + to);
            }

            @Override
            public void syncDirectory(Path synced) throws IOException {
                super.syncDirectory(synced);
                calls.add("sync " + synced);
            }
        };
        try (Store store = LsmStore.open(options().build(), disk, allocator)) {
            store.put(key(1), key(2));
            calls.clear();
            store.administration().checkpoint(checkpoint, PATIENT);
        }
        String ofStore = directory.resolve("store").toString();
        assertThat(calls.stream().filter(call -> !call.contains(ofStore)))
                .containsExactly(
                        "sync " + checkpoint,
                        "rename " + checkpoint.resolve(FileNames.MANIFEST),
                        "sync " + checkpoint,
                        "sync " + directory);
    }

    /// Of an empty store, or before its tables were linked, nothing else is in it: a new store would begin there.
    @Test
    void aCheckpointThatWasCutOffIsNotTakenForANewStore() throws IOException {
        Path cutOff = directory.resolve("cut-off");
        Allocator allocator = new Allocator();
        Path store = Files.createDirectory(directory.resolve("store"));
        StoreFiles files = new StoreFiles(new RealDisk(allocator), allocator, StoreOptions.at(store));
        Checkpoint checkpoint = new Checkpoint(files, cutOff);
        checkpoint.create();
        checkpoint.begin();
        assertThatThrownBy(() -> LsmStore.open(StoreOptions.at(cutOff)))
                .isInstanceOf(CorruptionException.class)
                .hasMessageContaining("this is not a manifest");
        checkpoint.finish(Version.EMPTY);
        LsmStore.open(StoreOptions.at(cutOff)).close();
    }

    /// One writer counts up, so that what a checkpoint holds is right when it is a first part of what was
    /// written, and no less than what was acknowledged before the checkpoint was asked for.
    @Test
    void checkpointsAreConsistentWhileWritesFlushesAndCompactionsGoOn() throws Exception {
        try (Store store = LsmStore.open(options()
                .wal(WalMode.OS)
                .memtableBytes(16 << 10)
                .level0(2, 20, 40)
                .build())) {
            AtomicInteger acknowledged = new AtomicInteger();
            AtomicBoolean stop = new AtomicBoolean();
            Thread writer = Thread.ofPlatform().start(() -> {
                for (int i = 1; !stop.get(); i++) {
                    store.put(key(i % 500), Records.bytes(Integer.toString(i)));
                    acknowledged.set(i);
                }
            });
            for (int c = 0; c < 8; c++) {
                Path checkpoint = directory.resolve("checkpoint" + c);
                int before = acknowledged.get();
                store.administration().checkpoint(checkpoint, PATIENT);
                int last = 0;
                try (Store copy = LsmStore.open(StoreOptions.at(checkpoint))) {
                    for (int i = 0; i < 500; i++) {
                        last = Math.max(last, number(copy.get(key(i))));
                    }
                    assertThat(last).isGreaterThanOrEqualTo(before);
                    for (int i = Math.max(1, last - 499); i <= last; i++) {
                        assertThat(number(copy.get(key(i % 500))))
                                .as("checkpoint %d, write %d of %d", c, i, last)
                                .isEqualTo(i);
                    }
                }
            }
            stop.set(true);
            writer.join();
        }
    }

    private static int number(byte[] valueOrNull) {
        return valueOrNull == null ? 0 : Integer.parseInt(new String(valueOrNull));
    }

    @Test
    void aCheckpointThatCannotBeSaysWhyAndLeavesNothing() throws IOException {
        Path there = Files.createDirectory(directory.resolve("there"));
        Path file = Files.writeString(directory.resolve("file"), "x");
        try (Store store = LsmStore.open(options().build())) {
            store.put(key(1), key(1));
            assertRefused(store, there, CheckpointException.Reason.EXISTS);
            assertRefused(store, file, CheckpointException.Reason.EXISTS);
            assertRefused(store, Path.of("/"), CheckpointException.Reason.EXISTS);
            assertRefused(store, directory.resolve("no/such"), CheckpointException.Reason.PARENT_MISSING);
            assertRefused(store, directory.resolve("store/inside"), CheckpointException.Reason.INSIDE_STORE);
            Path link = Files.createSymbolicLink(directory.resolve("link"), directory.resolve("store"));
            assertRefused(store, link.resolve("000777.table"), CheckpointException.Reason.INSIDE_STORE);
            assertRefused(store, directory.resolve("a".repeat(300)), CheckpointException.Reason.NOT_MADE)
                    .hasMessageContaining("reason=File name too long");
            assertRefused(store, file.resolve("inside"), CheckpointException.Reason.NOT_MADE)
                    .hasMessageContaining("reason=Not a directory");
            Path otherFileSystem =
                    Path.of("/dev/shm/kv-checkpoint-" + ProcessHandle.current().pid());
            if (Files.isWritable(otherFileSystem.getParent())
                    && !Files.getFileStore(otherFileSystem.getParent()).equals(Files.getFileStore(directory))) {
                assertRefused(store, otherFileSystem, CheckpointException.Reason.OTHER_FILE_SYSTEM);
                assertThat(otherFileSystem).doesNotExist();
            }
            assertThat(there).isEmptyDirectory();
            assertThat(store.isWritable()).isTrue();
        }
    }

    private static AbstractThrowableAssert<?, ?> assertRefused(
            Store store, Path directory, CheckpointException.Reason reason) {
        return assertThatThrownBy(() -> store.administration().checkpoint(directory, PATIENT))
                .isInstanceOfSatisfying(
                        CheckpointException.class, e -> assertThat(e.reason()).isEqualTo(reason))
                .hasMessageContaining(directory.toString());
    }

    @Test
    void aFlushThatIsTriedAgainSaysSoInsteadOfLettingWait() throws Exception {
        kv.lsm.disk.FaultyDisk disk = new kv.lsm.disk.FaultyDisk();
        Store store = LsmStore.open(
                StoreOptions.at(Path.of("/faulty")).toBuilder()
                        .wal(WalMode.OS)
                        .memtableBytes(64 << 10)
                        .build(),
                disk,
                new kv.lsm.memory.Allocator());
        store.put(key(1), new byte[40 << 10]);
        store.put(key(2), key(2)); // finds the memtable half full, and has the next log made
        assertThat(store.administration().awaitIdle(LONG, PATIENT)).isTrue(); // it is there
        assertThat(store.metrics().flushes()).isZero();
        disk.setFaults((count, what) -> true);
        assertThatThrownBy(() -> store.administration().flush(PATIENT))
                .isInstanceOf(AttemptFailedException.class)
                .hasMessageContaining("a flush failed and is tried again");
        assertThatThrownBy(() -> store.administration().awaitIdle(LONG, PATIENT))
                .isInstanceOf(AttemptFailedException.class);
        disk.setFaults(kv.lsm.disk.FaultyDisk.NONE);
        Eventually.holds(() -> store.metrics().flushes() == 1);
        assertThat(store.administration().awaitIdle(LONG, PATIENT)).isTrue();
        store.close();
    }

    /// A memtable that waits for its flush, and a second, not empty, that cannot be frozen before it.
    private static Store withoutRoomToFreeze(kv.lsm.disk.FaultyDisk disk) {
        Store store = LsmStore.open(
                StoreOptions.at(Path.of("/faulty")).toBuilder()
                        .wal(WalMode.OS)
                        .memtableBytes(8 << 10)
                        .frozenMemtablesMax(1)
                        .stallLimit(Duration.ZERO)
                        .build(),
                disk,
                new kv.lsm.memory.Allocator());
        for (int i = 0; store.metrics().frozenMemtables() == 0; i++) {
            store.put(key(i), new byte[500]);
        }
        return store;
    }

    /// Found by [MetamorphicTest], seed -1915548080642909313: it waited there for as long as a writer may.
    @Test
    void aFlushThatCannotBeginForOneThatFailsSaysSoInsteadOfLettingWait() {
        kv.lsm.disk.FaultyDisk disk = new kv.lsm.disk.FaultyDisk();
        disk.setFaults((count, what) -> what.startsWith("write") && what.contains(".table"));
        Store store = withoutRoomToFreeze(disk);
        assertThatThrownBy(() -> store.administration().flush(PATIENT))
                .isInstanceOf(AttemptFailedException.class)
                .hasMessageContaining("a flush failed and is tried again")
                .hasMessageContaining(".table");
        disk.setFaults(kv.lsm.disk.FaultyDisk.NONE);
        Eventually.holds(() -> store.metrics().frozenMemtables() == 0);
        store.administration().flush(PATIENT);
        store.close();
    }

    private static boolean isTriedAgain(Store store) {
        return catchThrowable(() -> store.administration().awaitIdle(Duration.ZERO, PATIENT))
                instanceof AttemptFailedException;
    }

    /// Asks when a thread of the store deletes what its work, which it has just published, has made needless.
    private static void assertSaysNothingOfTheFailureOnceDone(
            Store store, kv.lsm.disk.FaultyDisk disk, String thread, String deleted) {
        AtomicReference<Optional<Throwable>> heard = new AtomicReference<>();
        disk.setFaults((count, what) -> {
            if (what.startsWith("delete")
                    && what.endsWith(deleted)
                    && Thread.currentThread().getName().equals(thread)) {
                heard.compareAndSet(
                        null,
                        Optional.ofNullable(
                                catchThrowable(() -> store.administration().awaitIdle(Duration.ZERO, PATIENT))));
            }
            return false;
        });
        Eventually.holds(() -> heard.get() != null);
        assertThat(heard.get()).isEmpty();
    }

    /// A flush that was asked for then was refused: `flush` right after `frozen_memtables` had become 0.
    @Test
    void aFlushIsNotSaidToFailOnceItsTablesAreSeen() {
        kv.lsm.disk.FaultyDisk disk = new kv.lsm.disk.FaultyDisk();
        disk.setFaults((count, what) -> what.startsWith("write") && what.contains(".table"));
        Store store = withoutRoomToFreeze(disk);
        assertThatThrownBy(() -> store.administration().flush(PATIENT)).isInstanceOf(AttemptFailedException.class);
        assertSaysNothingOfTheFailureOnceDone(store, disk, "kv-flush", ".log");
        store.close();
    }

    @Test
    void aCompactionIsNotSaidToFailOnceItsTablesAreSeen() {
        kv.lsm.disk.FaultyDisk disk = new kv.lsm.disk.FaultyDisk();
        disk.setFaults((count, what) -> what.startsWith("write")
                && what.contains(".table")
                && Thread.currentThread().getName().equals("kv-compact"));
        Store store = LsmStore.open(
                StoreOptions.at(Path.of("/faulty")).toBuilder()
                        .wal(WalMode.OS)
                        .level0(2, 8, 12)
                        .build(),
                disk,
                new kv.lsm.memory.Allocator());
        for (int i = 0; i < 2; i++) {
            store.put(key(1), key(i));
            store.administration().flush(PATIENT);
        }
        Eventually.holds(() -> isTriedAgain(store));
        assertSaysNothingOfTheFailureOnceDone(store, disk, "kv-compact", ".table");
        Eventually.holds(() -> store.metrics().compactions() == 1);
        store.close();
    }

    /// A woken writer takes each place at once, so its own memtable is frozen by others.
    @Test
    void aFlushEndsAlsoWhereWritersAreStalledAllTheTime() throws InterruptedException {
        StoreOptions narrow = options()
                .wal(WalMode.OS)
                .memtableBytes(8 << 10)
                .frozenMemtablesMax(1)
                .compaction(CompactionPolicyKind.NONE)
                .build();
        try (Store store = LsmStore.open(narrow)) {
            AtomicBoolean stop = new AtomicBoolean();
            List<Thread> writers = Stream.of(1, 2, 3)
                    .map(writer -> Thread.ofPlatform().start(() -> {
                        for (int i = 0; !stop.get(); i++) {
                            store.put(key(writer * 1_000_000 + i % 10_000), new byte[500]);
                        }
                    }))
                    .toList();
            Eventually.holds(() -> store.metrics().flushes() > 3);
            for (int i = 0; i < 20; i++) {
                store.administration().flush(PATIENT);
            }
            stop.set(true);
            for (Thread writer : writers) {
                writer.join();
            }
        }
    }

    private static StallCause putUntilStalled(Store store) {
        for (int i = 0; ; i++) {
            try {
                store.put(key(i), new byte[500]);
            } catch (WriteStalledException e) {
                return e.stallCause();
            }
        }
    }

    @Test
    void aStopEndsTheWaitForAFlushThatCannotBegin() {
        StoreOptions narrow = StoreOptions.at(Path.of("/faulty")).toBuilder()
                .wal(WalMode.OS)
                .memtableBytes(8 << 10)
                .level0(2, 3, 4)
                .stallLimit(Duration.ofMillis(50))
                .build();
        GatedDisk disk = new GatedDisk(new kv.lsm.disk.FaultyDisk());
        try (Store store = LsmStore.open(narrow, disk, new kv.lsm.memory.Allocator());
                GatedDisk.Gates gates = disk.openedAtTheEnd()) {
            disk.hold(GatedDisk.COMPACTION);
            for (StallCause cause = null; cause != StallCause.LEVEL0_STOP; ) {
                cause = putUntilStalled(store);
            }
            AtomicInteger asked = new AtomicInteger();
            assertThatThrownBy(() -> store.administration().flush(() -> asked.incrementAndGet() > 3))
                    .isInstanceOf(StoreClosedException.class);
            assertThat(asked).hasValue(4);
        }
    }

    @Test
    void aWriteThatIsStalledByAFlushThatFailsSaysWhyThatIs() {
        kv.lsm.disk.FaultyDisk disk = new kv.lsm.disk.FaultyDisk();
        disk.setFaults((count, what) -> what.startsWith("write") && what.contains(".table"));
        Store store = LsmStore.open(
                StoreOptions.at(Path.of("/faulty")).toBuilder()
                        .wal(WalMode.OS)
                        .memtableBytes(8 << 10)
                        .stallLimit(Duration.ofMillis(300))
                        .build(),
                disk,
                new kv.lsm.memory.Allocator());
        for (int i = 0; store.metrics().frozenMemtables() == 0; i++) {
            store.put(key(i), new byte[500]);
        }
        Eventually.holds(() -> isTriedAgain(store));
        assertThatThrownBy(() -> {
                    for (int i = 0; ; i++) {
                        store.put(key(i), new byte[500]);
                    }
                })
                .isInstanceOf(WriteStalledException.class)
                .hasMessageContaining("cause=frozen_memtables")
                .hasMessageContaining("reason=a flush failed and is tried again");
        disk.setFaults(kv.lsm.disk.FaultyDisk.NONE);
        store.close();
    }

    @Test
    void aStoreThatFailedWithNothingLeftToFlushIsNotIdle() {
        kv.lsm.disk.FaultyDisk disk = new kv.lsm.disk.FaultyDisk();
        Store store = LsmStore.open(
                StoreOptions.at(Path.of("/faulty")).toBuilder()
                        .wal(WalMode.OS)
                        .memtableBytes(8 << 10)
                        .build(),
                disk,
                new kv.lsm.memory.Allocator());
        assertThat(store.administration().awaitIdle(LONG, PATIENT)).isTrue();
        disk.setFaults((count, what) -> what.equals("sync directory"));
        assertThatThrownBy(() -> {
                    for (int i = 0; ; i++) {
                        store.put(key(i), new byte[500]);
                    }
                })
                .isInstanceOf(StoreFailedException.class);
        assertThatThrownBy(() -> store.administration().flush(PATIENT)).isInstanceOf(StoreFailedException.class);
        assertThatThrownBy(() -> store.administration().awaitIdle(LONG, PATIENT))
                .isInstanceOf(StoreFailedException.class);
        closeFailed(store);
    }

    private static void closeFailed(Store store) {
        try {
            store.close();
        } catch (StoreFailedException e) {
            assertThat(e).hasMessageContaining("takes no more writes");
        }
    }
}
