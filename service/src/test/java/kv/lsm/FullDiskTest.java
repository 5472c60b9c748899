package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.StreamHandler;
import kv.Eventually;
import kv.lsm.disk.Disk;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.disk.ForwardingDisk;
import kv.lsm.disk.LogFile;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A disk without room: nothing is lost, and the store goes on by itself when there is room again.
class FullDiskTest {
    private static final long PLENTY = 1 << 30;

    private final FaultyDisk disk = new FaultyDisk();
    private final Allocator allocator = new Allocator();
    private final List<byte[]> values = new ArrayList<>();

    private LsmStore open(StoreOptions options) {
        return LsmStore.open(options, disk, allocator);
    }

    private static StoreOptions options(WalMode wal) {
        return StoreState.options(wal).toBuilder()
                .stallLimit(Duration.ofMillis(300))
                .build();
    }

    /// Where what fails passes by itself: a busy machine may take its time.
    private static StoreOptions patient(WalMode wal) {
        return options(wal).toBuilder().stallLimit(Duration.ofMinutes(1)).build();
    }

    private void put(Store store, int times) {
        for (int i = 0; i < times; i++) {
            put(store);
        }
    }

    private boolean takesAPut(Store store) {
        try {
            put(store);
            return true;
        } catch (WriteStalledException e) {
            return false;
        }
    }

    private void put(Store store) {
        byte[] value = new byte[1_000];
        new SplittableRandom(values.size()).nextBytes(value);
        store.put(key(values.size()), value);
        values.add(value);
    }

    private static byte[] key(int i) {
        return Records.bytes("key %06d".formatted(i));
    }

    private void checkAll(Store store) {
        for (int i = 0; i < values.size(); i++) {
            assertThat(store.get(key(i))).as("key %d", i).isEqualTo(values.get(i));
        }
    }

    private void checkAfterPowerLoss(StoreOptions options) {
        try (Store store = LsmStore.open(options, disk.losePower(new SplittableRandom(1)), new Allocator())) {
            checkAll(store);
        }
    }

    /// Why the store tries something again, or null.
    static String failedAttempt(Store store) {
        try {
            store.administration().awaitIdle(Duration.ZERO, () -> false);
            return null;
        } catch (AttemptFailedException e) {
            return e.getMessage();
        }
    }

    /// Tables that the next store compacts.
    private void putWithoutCompaction(StoreOptions options) {
        try (LsmStore store = open(options.toBuilder()
                .compaction(CompactionPolicyKind.NONE)
                .stallLimit(Duration.ofMinutes(1))
                .build())) {
            put(store, 60);
        }
    }

    private void checkThatItCompactsWhereThereIsRoom(Store store) {
        disk.setRoom(PLENTY);
        Eventually.holds(() -> failedAttempt(store) == null);
        assertThat(store.administration().awaitIdle(Duration.ofMinutes(1), () -> false))
                .isTrue();
        assertThat(store.metrics().compactions()).isPositive();
    }

    private static long tablesOf(Store store) {
        return store.metrics().levels().stream()
                .mapToLong(StoreMetrics.Level::tables)
                .sum();
    }

    private long filesLike(String suffix) {
        return disk.list().stream().filter(name -> name.endsWith(suffix)).count();
    }

    @Test
    void aCompactionThatFindsNoRoomGivesBackWhatItTookAndIsDoneWhenThereIsRoom() {
        StoreOptions options = options(WalMode.ALWAYS);
        putWithoutCompaction(options);
        disk.setRoom(40 << 10); // for logs, and not for a copy of all
        LsmStore store = open(options);
        try {
            Eventually.holds(() -> failedAttempt(store) != null);
            assertThat(failedAttempt(store))
                    .contains("failed and is tried again")
                    .contains("No space left on device");
            Eventually.holds(store::isWritable);
            put(store);
            checkAll(store);
            assertThatThrownBy(() -> store.administration().awaitIdle(Duration.ofMinutes(1), () -> false))
                    .isInstanceOf(AttemptFailedException.class)
                    .hasMessageContaining("No space left");
            Eventually.holds(() -> filesLike(".table") == tablesOf(store));
            checkThatItCompactsWhereThereIsRoom(store);
            assertThat(filesLike(FileNames.TEMPORARY)).isZero();
            checkAll(store);
            checkAfterPowerLoss(options);
        } finally {
            closeDead(store);
        }
        assertThat(allocator.allocatedBytes()).isZero();
    }

    @Test
    void aStartWithoutRoomForItsLogSaysHowMuchItNeedsAndWorksWhenThereIsRoom() {
        StoreOptions options = options(WalMode.ALWAYS);
        try (Store store = open(options)) {
            put(store, 3);
        }
        disk.setRoom(100);
        assertThatThrownBy(() -> open(options))
                .isInstanceOf(StoreException.class)
                .hasMessageMatching("cannot open the store: directory=\\S+: no room for a new log: bytes_needed=\\d+, "
                        + "bytes_usable=\\d+, reason=No space left on device.*; "
                        + "free the disk, or start with a smaller --memtable-bytes");
        disk.setRoom(PLENTY);
        try (Store store = open(options)) {
            checkAll(store);
        }
    }

    /// A formatter that finds no file to open throws an Error.
    @Test
    void aLineThatCannotBeLoggedCostsTheLineAndNotTheFlush() {
        Logger logger = Logger.getLogger(Retry.class.getName());
        List<String> lines = new CopyOnWriteArrayList<>();
        Handler broken = new StreamHandler() {
            @Override
            public synchronized void publish(LogRecord line) {
                lines.add(line.getMessage());
                throw new ExceptionInInitializerError("too many open files");
            }
        };
        StoreOptions options = patient(WalMode.ALWAYS);
        LsmStore store = open(options);
        logger.addHandler(broken);
        try {
            put(store);
            disk.setRoom(100);
            Thread writer = Thread.ofVirtual().start(() -> put(store, 60));
            Eventually.holds(() -> !lines.isEmpty());
            disk.setRoom(PLENTY);
            Eventually.holds(() -> !writer.isAlive());
            checkAll(store);
            assertThat(store.isWritable()).isTrue();
            assertThat(lines.getFirst())
                    .doesNotContain("\n")
                    .contains("No space left on device")
                    .endsWith("; free the disk: nothing is lost meanwhile");
        } finally {
            logger.removeHandler(broken);
            closeDead(store);
        }
    }

    /// Or a flush, or the next log, would find the disk full.
    @Test
    void aCompactionIsNotBegunUntilThereIsRoomForALogAndAFlushBesideIt() {
        StoreOptions options = options(WalMode.NONE); // which has no logs that come and go
        putWithoutCompaction(options);
        long tableBytes = disk.list().stream()
                .filter(name -> name.endsWith(".table"))
                .mapToLong(name -> disk.content(name).length)
                .sum();
        disk.setRoom(tableBytes + options.memtableBytes());
        int[] writes = {0};
        disk.setFaults((count, what) -> {
            writes[0] += what.startsWith("write") && what.contains(".table") ? 1 : 0;
            return false;
        });
        LsmStore store = open(options);
        try {
            Eventually.holds(() -> failedAttempt(store) != null);
            assertThat(failedAttempt(store))
                    .contains("failed and is tried again")
                    .contains("No space left on device");
            assertThat(writes[0]).isZero();
            checkAll(store);
            checkThatItCompactsWhereThereIsRoom(store);
            checkAll(store);
        } finally {
            closeDead(store);
        }
    }

    /// As where a quota ends it.
    @Test
    void aCompactionThatFindsLessRoomThanTheDiskToldGivesBackWhatItTook() {
        StoreOptions options = options(WalMode.ALWAYS);
        putWithoutCompaction(options);
        disk.setRoom(40 << 10);
        Disk withAQuota = new ForwardingDisk(disk) {
            @Override
            public long usableBytes(Path directory) {
                return PLENTY;
            }
        };
        LsmStore store = LsmStore.open(options, withAQuota, allocator);
        try {
            Eventually.holds(() -> failedAttempt(store) != null);
            checkThatItCompactsWhereThereIsRoom(store);
            assertThat(filesLike(".table")).isEqualTo(tablesOf(store));
            assertThat(filesLike(".table" + FileNames.TEMPORARY)).isZero();
            checkAll(store);
        } finally {
            closeDead(store);
        }
        assertThat(allocator.allocatedBytes()).isZero();
    }

    /// Or it would keep its room until the next start.
    @Test
    void whatAFailedFlushLeavesIsDeletedLaterWhereItCannotBeDeletedAtOnce() {
        AtomicBoolean cannotDelete = new AtomicBoolean(true);
        Disk keeping = new ForwardingDisk(disk) {
            @Override
            public void delete(Path file) throws IOException {
                if (cannotDelete.get()) {
                    throw new IOException("planted fault: delete " + file);
                }
                super.delete(file);
            }
        };
        LsmStore store = LsmStore.open(patient(WalMode.ALWAYS), keeping, allocator);
        int[] failures = {0};
        disk.setFaults((count, what) -> what.startsWith("write") && what.contains(".table") && ++failures[0] <= 1);
        try {
            put(store, 60);
            Eventually.holds(() -> store.metrics().flushes() > 0);
            assertThat(filesLike(".table" + FileNames.TEMPORARY)).isPositive();
            cannotDelete.set(false);
            put(store, 20);
            Eventually.holds(() -> filesLike(".table" + FileNames.TEMPORARY) == 0);
            checkAll(store);
        } finally {
            closeDead(store);
        }
    }

    private static boolean tellsOfAFailure(StoreMetrics metrics) {
        return metrics.flushFails() || metrics.compactionFails();
    }

    @ParameterizedTest
    @EnumSource
    void writersWaitForRoomAreToldAndGoOnAfterwards(WalMode wal) {
        StoreOptions options = options(wal);
        LsmStore store = open(options);
        try {
            put(store);
            disk.setRoom(20 << 10);
            Eventually.holds(() -> {
                assertThatThrownBy(() -> {
                            while (true) {
                                put(store);
                            }
                        })
                        .isInstanceOf(WriteStalledException.class)
                        .hasMessageContaining(wal == WalMode.NONE ? "cause=" : "reason=No space left on device");
                // a flush may give the room of a log back
                return !store.isWritable() && tellsOfAFailure(store.metrics());
            });
            checkAll(store);
            disk.setRoom(PLENTY);
            Eventually.holds(() -> store.isWritable() && failedAttempt(store) == null);
            Eventually.holds(() -> !tellsOfAFailure(store.metrics()));
            for (int i = 0; i < 50; i++) {
                Eventually.holds(() -> takesAPut(store)); // on a busy machine a flush outlasts the stall limit
            }
            Eventually.holds(() -> failedAttempt(store) == null); // a compaction may wait to be tried again
            assertThat(store.administration().awaitIdle(Duration.ofMinutes(1), () -> false))
                    .isTrue();
            checkAll(store);
            if (wal == WalMode.ALWAYS) {
                checkAfterPowerLoss(options);
            }
        } finally {
            closeDead(store);
        }
        assertThat(allocator.allocatedBytes()).isZero();
    }

    @Test
    void aFlushThatFailsKeepsItsMemtableAndIsTriedAgain() {
        LsmStore store = open(patient(WalMode.ALWAYS));
        int[] failures = {0};
        disk.setFaults((count, what) -> what.startsWith("write") && what.contains(".table") && ++failures[0] <= 3);
        try {
            put(store, 60);
            Eventually.holds(() -> store.metrics().flushes() > 0);
            assertThat(failures[0]).isGreaterThan(3);
            checkAll(store);
            assertThat(store.metrics().frozenMemtables()).isLessThanOrEqualTo(2);
            checkAfterPowerLoss(options(WalMode.ALWAYS));
        } finally {
            closeDead(store);
        }
    }

    /// The system may have dropped what a failed sync did not bring to the disk: a table is written anew.
    @Test
    void aTableWhoseSyncFailedIsWrittenToAnotherFile() {
        LsmStore store = open(patient(WalMode.ALWAYS));
        List<String> synced = new CopyOnWriteArrayList<>();
        disk.setFaults((count, what) -> {
            if (what.startsWith("sync ") && what.contains(".table")) {
                synced.add(what);
                return synced.size() <= 2;
            }
            return false;
        });
        try {
            put(store, 60);
            Eventually.holds(() -> store.metrics().flushes() > 1);
            assertThat(synced).doesNotHaveDuplicates().hasSizeGreaterThan(2);
            checkAll(store);
            checkAfterPowerLoss(options(WalMode.ALWAYS));
        } finally {
            closeDead(store);
        }
    }

    /// What follows a torn edit would not be found.
    @Test
    void aManifestThatCouldNotBeWrittenIsReplacedByAnother() {
        LsmStore store = open(patient(WalMode.ALWAYS));
        int[] failures = {0};
        disk.setFaults((count, what) -> what.startsWith("write MANIFEST") && ++failures[0] <= 4);
        try {
            put(store, 100);
            Eventually.holds(() -> store.metrics().flushes() > 1);
            assertThat(failures[0]).isGreaterThan(4);
            checkAll(store);
            checkAfterPowerLoss(options(WalMode.ALWAYS));
        } finally {
            closeDead(store);
        }
    }

    @Test
    void aManifestWhoseSyncFailedEndsWriting() {
        endsWritingWhenItFails("sync MANIFEST.tmp");
    }

    /// It may have lost the name of a log that is in use.
    @Test
    void aDirectoryWhoseSyncFailedEndsWriting() {
        endsWritingWhenItFails("sync directory");
    }

    /// As where too many files are open: nothing was lost.
    @Test
    void aDirectoryThatCannotBeOpenedToBeSyncedEndsNothing() {
        LsmStore store = open(patient(WalMode.ALWAYS));
        int[] failures = {0};
        disk.setFaults((count, what) -> what.equals("open directory") && ++failures[0] <= 3);
        try {
            put(store, 60);
            Eventually.holds(() -> store.metrics().flushes() > 1);
            assertThat(failures[0]).isGreaterThan(3);
            checkAll(store);
            checkAfterPowerLoss(options(WalMode.ALWAYS));
        } finally {
            closeDead(store);
        }
    }

    /// Tried again before all else it would keep the policy's compactions from being made, and writers waiting.
    @Test
    void aCompactionOfAllTablesThatFailsIsGivenUpUntilSomebodyAsksAgain() {
        StoreOptions options = patient(WalMode.ALWAYS).toBuilder()
                .compaction(CompactionPolicyKind.NONE)
                .build();
        LsmStore store = open(options);
        AtomicBoolean failing = new AtomicBoolean();
        disk.setFaults((count, what) -> failing.get() && what.startsWith("write") && what.contains(".table"));
        LoggedLines lines = new LoggedLines();
        try {
            put(store, 60);
            store.administration().flush(() -> false);
            failing.set(true);
            assertThatThrownBy(() -> store.administration().compact(() -> false))
                    .isInstanceOf(AttemptFailedException.class)
                    .hasMessageContaining("was given up");
            failing.set(false);
            assertThat(store.administration().awaitIdle(Duration.ofMinutes(1), () -> false))
                    .isTrue();
            assertThat(store.metrics().compactions()).as("nobody asked again").isZero();
            assertThat(lines.all())
                    .singleElement()
                    .asString()
                    .contains("was given up", "reason=")
                    .endsWith("; ask again");
            store.administration().compact(() -> false);
            assertThat(store.metrics().compactions()).isEqualTo(1);
            checkAll(store);
        } finally {
            lines.end();
            closeDead(store);
        }
    }

    /// The operator was told that it failed. Made all the same it would take the room that others need.
    @Test
    void aCompactionOfAllTablesIsNotMadeAfterItsAnswer() {
        StoreOptions options = options(WalMode.NONE);
        putWithoutCompaction(options);
        disk.setRoom(options.memtableBytes());
        LsmStore store = open(options);
        try {
            Eventually.holds(() -> failedAttempt(store) != null);
            assertThatThrownBy(() -> store.administration().compact(() -> false))
                    .isInstanceOf(AttemptFailedException.class)
                    .hasMessageContaining("a compaction failed and is tried again");
            checkThatItCompactsWhereThereIsRoom(store);
            assertThat(store.metrics().levels())
                    .as("levels: of all tables merged there is one")
                    .hasSizeGreaterThan(1);
            checkAll(store);
        } finally {
            closeDead(store);
        }
    }

    /// Tried again at full speed it would fill the disk with zeros, and delete them, until somebody makes room.
    @ParameterizedTest
    @EnumSource(names = "NONE", mode = EnumSource.Mode.EXCLUDE)
    void aWriteLargerThanAMemtableThatFindsNoRoomFailsAtOnceAndKeepsNoOtherFromWriting(WalMode wal) {
        StoreOptions options = patient(wal);
        List<Long> made = new CopyOnWriteArrayList<>();
        AtomicBoolean isFull = new AtomicBoolean();
        Disk small = new ForwardingDisk(disk) {
            @Override
            public LogFile createLog(Path file, long bytes, boolean direct, TimeSlices slices) throws IOException {
                made.add(bytes);
                if (isFull.get() || bytes > 2 * options.memtableBytes()) {
                    throw new IOException("No space left on device");
                }
                return super.createLog(file, bytes, direct, slices);
            }
        };
        LsmStore store = LsmStore.open(options, small, allocator);
        byte[] large = new byte[3 * (int) options.memtableBytes()];
        try {
            put(store);
            for (int i = 0; i < 5; i++) {
                assertThatThrownBy(() -> store.put(Records.bytes("large"), large))
                        .isInstanceOf(WriteStalledException.class)
                        .hasMessageContaining("reason=No space left on device");
                assertThat(store.isWritable()).isTrue();
                Eventually.holds(() -> filesLike(".log") == 2); // that in use and the next
            }
            assertThat(made.stream().filter(bytes -> bytes <= 2 * options.memtableBytes()))
                    .as("logs of the usual size")
                    .hasSize(2);
            disk.setRoom(100);
            assertThatThrownBy(() -> store.put(Records.bytes("large"), large))
                    .isInstanceOf(WriteStalledException.class)
                    .hasMessageContaining("bytes_usable=100"); // and nothing was filled
            isFull.set(true);
            put(store, 4); // also into the log that was there before
            isFull.set(false);
            disk.setRoom(PLENTY);
            put(store, 20);
            assertThat(store.get(Records.bytes("large"))).isNull();
            checkAll(store);
            assertThat(made.stream().filter(bytes -> bytes > 2 * options.memtableBytes()))
                    .as("attempts")
                    .hasSize(5);
        } finally {
            closeDead(store);
        }
        assertThat(allocator.allocatedBytes()).isZero();
    }

    private void endsWritingWhenItFails(String call) {
        LsmStore store = open(patient(WalMode.ALWAYS));
        int[] calls = {0};
        disk.setFaults((count, what) -> what.equals(call) && ++calls[0] == 1);
        try {
            assertThatThrownBy(() -> {
                        while (true) {
                            put(store);
                        }
                    })
                    .isInstanceOf(StoreFailedException.class);
            assertThat(calls[0]).as(call).isEqualTo(1);
            checkAll(store);
            checkAfterPowerLoss(options(WalMode.ALWAYS));
        } finally {
            closeDead(store);
        }
    }

    /// What the package logs while it is open.
    private static final class LoggedLines extends Handler {
        private final Logger logger = Logger.getLogger(LsmStore.class.getPackageName());
        private final List<String> lines = new CopyOnWriteArrayList<>();

        LoggedLines() {
            logger.addHandler(this);
        }

        List<String> all() {
            return lines;
        }

        @Override
        public void publish(LogRecord line) {
            lines.add(line.getMessage());
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}

        void end() {
            logger.removeHandler(this);
        }
    }

    private static void closeDead(Store store) {
        try {
            store.close();
        } catch (StoreException e) { // says that the disk is gone
            assertThat(e).isNotInstanceOf(CorruptionException.class);
        }
    }
}
