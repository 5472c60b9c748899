package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Stream;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/// Random operations under random options, against a sorted map; the options change with every restart. Half of
/// the histories are on real files, half on a disk whose calls fail now and then: the store is then killed and
/// opened again. That disk loses power, too, when all that was acknowledged is durable.
///
/// `-Dkv.rounds=N` histories of `-Dkv.operations=M` operations each, `-Dkv.seed=S` to repeat one.
class MetamorphicTest {
    private static final int OPERATIONS = Integer.getInteger("kv.operations", 4_000);
    private static final LongAdder PLAYED = new LongAdder();
    private static final LongAdder OPTION_SETS = new LongAdder();
    private static final LongAdder FAILED_STORES = new LongAdder();
    private static final LongAdder REQUESTS = new LongAdder();
    private static final LongAdder CHECKPOINTS = new LongAdder();
    private static final LongAdder POWER_LOSSES = new LongAdder();

    @TempDir
    Path directory;

    @AfterAll
    static void tellOperations() {
        System.out.printf(
                "metamorphic operations: %d, restarts with new options: %d, stores killed after a failed call: %d, "
                        + "flushes and compactions asked for: %d, checkpoints: %d, power losses: %d%n",
                PLAYED.sum(),
                OPTION_SETS.sum(),
                FAILED_STORES.sum(),
                REQUESTS.sum(),
                CHECKPOINTS.sum(),
                POWER_LOSSES.sum());
    }

    @TestFactory
    Stream<DynamicTest> theStoreBehavesLikeASortedMapWhateverItsOptions() {
        return Seeds.tests(
                12, seed -> new History(seed, seed % 2 == 0 ? new RealGround() : new FaultyGround(seed)).play());
    }

    /// What a store stands on.
    private interface Ground {
        Store open(StoreOptions options);

        /// Lets a call fail soon, if this ground ever does.
        void planFault(SplittableRandom random);

        boolean isFaultPlanned();

        /// Ends a store that has failed, as a kill would, and the fault with it.
        void kill(Store store);

        /// Real files: a store on them can be linked to another directory, and nobody can cut their power.
        boolean isReal();

        /// Ends a store as a power cut does.
        void losePower(Store store, SplittableRandom random);
    }

    private static class RealGround implements Ground {
        @Override
        public Store open(StoreOptions options) {
            return LsmStore.open(options);
        }

        @Override
        public void planFault(SplittableRandom random) {}

        @Override
        public boolean isFaultPlanned() {
            return false;
        }

        @Override
        public void kill(Store store) {
            throw new AssertionError("a store on real files has failed");
        }

        @Override
        public boolean isReal() {
            return true;
        }

        @Override
        public void losePower(Store store, SplittableRandom random) {
            throw new AssertionError("nobody cuts the power of real files");
        }
    }

    private static final class FaultyGround implements Ground {
        private FaultyDisk disk = new FaultyDisk();
        private boolean planned;

        FaultyGround(long seed) {
            disk.setSeed(seed);
        }

        @Override
        public Store open(StoreOptions options) {
            return LsmStore.open(options, disk, new Allocator());
        }

        @Override
        public void planFault(SplittableRandom random) {
            int call = random.nextInt(1, 40);
            int[] left = {6};
            planned = true;
            disk.setFaults(
                    switch (random.nextInt(3)) {
                        case 0 -> (count, what) -> count == call && !isRead(what);
                        case 1 -> (count, what) -> count >= call && needsRoom(what) && left[0]-- > 0;
                        default -> (count, what) -> count >= call && isSyncOfWhatIsInUse(what);
                    });
        }

        /// Fails on a full disk, and the store goes on when there is room again.
        private static boolean needsRoom(String what) {
            return what.startsWith("create ") || what.startsWith("write ");
        }

        /// Ends writing. A table is written anew, and so is a manifest that is to replace another: where that
        /// fails for ever, writers are stalled for ever.
        private static boolean isSyncOfWhatIsInUse(String what) {
            return what.startsWith("sync") && !what.contains(".table") && !what.contains(FileNames.TEMPORARY);
        }

        private static boolean isRead(String what) {
            return what.startsWith("read") || what.startsWith("open") || what.startsWith("map") || what.equals("list");
        }

        @Override
        public boolean isFaultPlanned() {
            return planned;
        }

        @Override
        public void kill(Store store) {
            goOnWith(disk.killProcess(), store);
            FAILED_STORES.increment();
        }

        private void goOnWith(FaultyDisk left, Store dead) {
            try {
                dead.close();
            } catch (StoreException e) {
                assertThat(e).isNotInstanceOf(CorruptionException.class); // says that the disk is gone
            }
            assertThat(disk.openHandles())
                    .as("open files of a store that was closed")
                    .isZero();
            disk = left;
            planned = false;
        }

        @Override
        public boolean isReal() {
            return false;
        }

        @Override
        public void losePower(Store store, SplittableRandom random) {
            goOnWith(disk.losePower(random), store);
        }
    }

    /// The check is checked: it has to find a store that now and then forgets a write.
    @Test
    void theCheckFindsAStoreThatForgetsAWrite() {
        History history = new History(1, new RealGround() {
            @Override
            public Store open(StoreOptions options) {
                return new ForgetfulStore(LsmStore.open(options));
            }
        });
        assertThatThrownBy(history::play).isInstanceOf(AssertionError.class);
        history.store.close();
    }

    /// One sequence of operations.
    private final class History {
        private final Ground ground;
        private final SplittableRandom random;
        private final Path ownDirectory;
        private final Model model = new Model();
        private final RandomKeys keys;
        private final List<OpenCursor> cursors = new ArrayList<>();
        /// Writes that failed, oldest first: the next opening tells whether they happened.
        private final List<Write> unsettled = new ArrayList<>();
        private StoreOptions options;
        private Store store;

        private record OpenCursor(RangeCursor cursor, NavigableMap<byte[], byte[]> wanted) {}

        private record Write(byte[] key, byte[] valueOrNull) {}

        History(long seed, Ground ground) {
            this.ground = ground;
            random = new SplittableRandom(seed);
            ownDirectory = directory.resolve(Long.toHexString(seed));
            keys = new RandomKeys(random);
        }

        void play() {
            open();
            for (int i = 0; i < OPERATIONS; i++) {
                try {
                    step();
                } catch (StoreFailedException e) {
                    killAndOpen();
                }
                PLAYED.increment();
            }
            killAndOpenAfterFault();
            model.checkAll(store);
            restart();
            model.checkAll(store);
            store.close();
        }

        private void open() {
            OPTION_SETS.increment();
            options = RandomOptions.draw(random, ownDirectory);
            store = ground.open(options);
        }

        private void step() {
            int choice = random.nextInt(1_000);
            if (random.nextInt(800) == 0) {
                administer();
            } else if (choice < 530) {
                write(keys.next(), keys.value());
            } else if (choice < 540) {
                writeTogether();
            } else if (choice < 550) {
                writeBatch();
            } else if (choice < 700) {
                write(keys.next(), null);
            } else if (choice < 930) {
                model.checkGet(store, keys.next());
            } else if (choice < 950) {
                prefetch();
            } else if (choice < 985) {
                model.checkRange(store, keys.next(), random.nextBoolean() ? keys.next() : null, random.nextInt(100));
            } else if (choice < 990) {
                cursors.add(new OpenCursor(store.range(new byte[0], null), new TreeMap<>(model.entries())));
            } else if (choice < 994) {
                checkCursors();
            } else if (choice < 996) {
                // without a log a failure takes what was not flushed
                if (options.wal() != WalMode.NONE) {
                    ground.planFault(random);
                }
            } else if (choice < 998) {
                restart();
            } else {
                model.checkAll(store);
            }
        }

        private void write(byte[] key, byte[] valueOrNull) {
            unsettled.add(new Write(key, valueOrNull));
            try {
                if (random.nextInt(4) == 0) {
                    PendingWrite begun = store.tryBegin(key, valueOrNull);
                    (begun != null ? begun : store.begin(key, valueOrNull)).await();
                } else if (valueOrNull == null) {
                    store.delete(key);
                } else {
                    store.put(key, valueOrNull);
                }
            } catch (WriteStalledException e) {
                hasNotHappened(e, 1);
            }
            settle();
        }

        /// The planned fault kept the store from making a log for the last `count` writes, which are one and need a
        /// larger one than others.
        private void hasNotHappened(WriteStalledException e, int count) {
            assertThat(ground.isFaultPlanned()).as(e.getMessage()).isTrue();
            assertThat(e).hasMessageContaining("larger than a memtable");
            unsettled.subList(unsettled.size() - count, unsettled.size()).clear();
        }

        /// What an operator asks for, none of which changes what the store holds, and power cuts.
        private void administer() {
            try {
                switch (random.nextInt(4)) {
                    case 0 -> store.administration().flush(() -> false);
                    case 1 -> store.administration().compact(() -> false);
                    case 2 -> takeCheckpoint();
                    default -> losePower();
                }
                REQUESTS.increment();
            } catch (AttemptFailedException e) { // the planned fault, and it is tried again
                assertThat(ground.isFaultPlanned()).as(e.getMessage()).isTrue();
            }
        }

        /// It is a store that holds what this one held then.
        private void takeCheckpoint() {
            if (!ground.isReal()) {
                return;
            }
            Path checkpoint = ownDirectory.resolveSibling(ownDirectory.getFileName() + "-" + CHECKPOINTS.sum());
            NavigableMap<byte[], byte[]> wanted = new TreeMap<>(model.entries());
            store.administration().checkpoint(checkpoint, () -> false);
            CHECKPOINTS.increment();
            write(keys.next(), null);
            write(keys.next(), keys.value());
            try (Store copy = LsmStore.open(RandomOptions.draw(random, checkpoint));
                    RangeCursor cursor = copy.range(new byte[0], null)) {
                Model.checkCursor(cursor, wanted, Integer.MAX_VALUE);
            }
        }

        /// When all that was acknowledged is durable.
        private void losePower() {
            if (ground.isReal() || ground.isFaultPlanned()) {
                return;
            }
            if (options.wal() != WalMode.ALWAYS || random.nextInt(4) == 0) {
                store.administration().flush(() -> false);
            }
            cursors.forEach(open -> open.cursor.close());
            cursors.clear();
            ground.losePower(store, random);
            POWER_LOSSES.increment();
            open();
            model.checkAll(store);
        }

        /// What was begun later wins, in whatever order they are awaited.
        private void writeTogether() {
            List<PendingWrite> begun = new ArrayList<>();
            for (int i = random.nextInt(20); i >= 0; i--) {
                Write write = new Write(keys.next(), random.nextInt(4) == 0 ? null : keys.value());
                unsettled.add(write);
                int awaited = random.nextInt(begun.size() + 1);
                try {
                    begun.add(awaited, store.begin(write.key, write.valueOrNull));
                } catch (WriteStalledException e) {
                    hasNotHappened(e, 1);
                }
            }
            begun.forEach(PendingWrite::await);
            settle();
        }

        /// All that was begun has happened.
        private void settle() {
            unsettled.forEach(this::apply);
            unsettled.clear();
        }

        private void apply(Write write) {
            if (write.valueOrNull == null) {
                model.delete(write.key);
            } else {
                model.put(write.key, write.valueOrNull);
            }
        }

        private void writeBatch() {
            List<WriteBatch.Write> writes = new ArrayList<>();
            for (int i = random.nextInt(30); i > 0; i--) {
                Write write = new Write(keys.next(), random.nextInt(4) == 0 ? null : keys.value());
                writes.add(new WriteBatch.Write(write.key, write.valueOrNull));
                unsettled.add(write);
            }
            try {
                store.begin(new WriteBatch(writes)).await();
            } catch (WriteStalledException e) {
                hasNotHappened(e, writes.size());
            }
            settle();
        }

        /// Changes nothing.
        private void prefetch() {
            byte[][] several =
                    Stream.generate(keys::next).limit(random.nextInt(20)).toArray(byte[][]::new);
            store.prefetchGets(several, several.length);
            store.prefetchWrites(several, several.length);
        }

        /// Cursors show the state of their opening, whatever was written since.
        private void checkCursors() {
            for (OpenCursor open : cursors) {
                try (RangeCursor cursor = open.cursor) {
                    Model.checkCursor(cursor, open.wanted, Integer.MAX_VALUE);
                }
            }
            cursors.clear();
        }

        private void restart() {
            checkCursors();
            if (ground.isFaultPlanned()) {
                killAndOpen();
                return;
            }
            assertThat(store.isWritable()).isTrue();
            store.close();
            open();
        }

        private void killAndOpenAfterFault() {
            if (ground.isFaultPlanned()) {
                killAndOpen();
            }
        }

        /// What was acknowledged is there; of what was not, a first part.
        private void killAndOpen() {
            cursors.forEach(open -> open.cursor.close());
            cursors.clear();
            ground.kill(store);
            open();
            for (int happened = 0; ; happened++) {
                if (holdsWhatTheModelDoes()) {
                    break;
                }
                assertThat(happened)
                        .as("no first part of the writes that failed gives what was found")
                        .isLessThan(unsettled.size());
                apply(unsettled.get(happened));
            }
            unsettled.clear();
            model.checkAll(store);
        }

        private boolean holdsWhatTheModelDoes() {
            return unsettled.stream()
                    .allMatch(write ->
                            Arrays.equals(store.get(write.key), model.entries().get(write.key)));
        }
    }
}
