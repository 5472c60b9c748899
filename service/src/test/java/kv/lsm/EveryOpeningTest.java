package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/// Opens a store in each of many states, writes, closes it, and lets the disk fail or crash in each of its
/// calls in turn, the closing of files too. One time in four the next opening meets some trouble in one of its
/// calls as well. Then the store is opened twice more, with another crash in between: it must open, and hold
/// what was promised. Whatever failed, a store that is closed leaves no memory, no mapping and no open file.
///
/// How tables are read, compressed and merged is drawn for each state and log mode. Every third call meets one
/// [Trouble] of many, so that each state and log mode meets all; `-Dkv.failures=all` lets every call meet all of
/// them, `-Dkv.seed=N` repeats one run.
class EveryOpeningTest {
    /// What happens in call number n.
    private enum Trouble {
        THE_CALL_FAILS,
        ALL_CALLS_FAIL_FROM_THERE,
        /// what needs room fails from there on, until the store is opened again
        THE_DISK_IS_FULL,
        /// … and it has room again before the store is closed
        THE_DISK_IS_FULL_FOR_A_WHILE,
        SYNCS_FAIL_FROM_THERE,
        THE_PROCESS_IS_KILLED,
        THE_POWER_FAILS
    }

    private static final boolean ALL = "all".equals(System.getProperty("kv.failures"));
    /// Which of the calls meet trouble: one of so many.
    private static final int STEP = ALL ? 1 : 3;
    private static final int WRITES = 16;
    private static final AtomicLong CASES = new AtomicLong();
    private static final AtomicLong TWICE = new AtomicLong();

    @AfterAll
    static void tellCases() {
        System.out.printf(
                "openings and closings with a fault in one call: cases=%d, of them in the next opening too: %d%n",
                CASES.get(), TWICE.get());
    }

    /// What does not change what a store holds.
    private record Shape(ReadMode read, Compression compression, CompactionPolicyKind compaction) {
        static Shape draw(StoreState state, WalMode wal, long seed) {
            SplittableRandom random =
                    new SplittableRandom(seed + state.ordinal() * WalMode.values().length + wal.ordinal());
            return new Shape(
                    RandomOptions.pick(random, ReadMode.values()),
                    RandomOptions.pick(random, Compression.values()),
                    RandomOptions.pick(random, CompactionPolicyKind.values()));
        }

        StoreOptions options(WalMode wal) {
            return StoreState.options(wal).toBuilder()
                    .read(read)
                    .compression(compression)
                    .compaction(compaction)
                    .stallLimit(Duration.ofMillis(20)) // a disk that has failed or is full lets writers wait
                    .build();
        }

        @Override
        public String toString() {
            return read + " " + compression + " " + compaction;
        }
    }

    @TestFactory
    Stream<DynamicTest> whateverFailsInAnOpeningOrAClosingTheStoreOpensAndHoldsWhatWasPromised() {
        long seed = Seeds.of(1).findFirst().orElseThrow();
        System.out.println("openings and closings with a fault in one call: -Dkv.seed=" + seed);
        return Stream.of(StoreState.values())
                .flatMap(state -> Stream.of(WalMode.values()).map(wal -> {
                    Shape shape = Shape.draw(state, wal, seed);
                    return DynamicTest.dynamicTest(
                            state + " " + wal + " " + shape + " -Dkv.seed=" + seed,
                            () -> everyCall(state, wal, shape, seed));
                }));
    }

    private static void everyCall(StoreState state, WalMode wal, Shape shape, long seed) {
        StoreState.Made made = state.make(wal, shape.compression, seed);
        Trouble[] troubles = Trouble.values();
        for (int call = 1; ; call++) {
            if (Math.floorMod(seed + call + wal.ordinal(), (long) STEP) != 0) {
                continue;
            }
            boolean reached = false;
            for (int i = 0; i < (ALL ? troubles.length : 1); i++) {
                Trouble trouble = troubles[(int) Math.floorMod(seed + call / STEP + i, (long) troubles.length)];
                CASES.incrementAndGet();
                reached |= new Case(made, wal, shape, trouble, call, seed).play();
            }
            if (!reached) {
                assertThat(call).as("calls of an opening and a closing").isGreaterThan(10);
                return;
            }
        }
    }

    private static final class Case {
        /// An opening and a closing have fewer calls, as a rule.
        private static final int SECOND_CALL_MAX = 60;

        private final Trouble trouble;
        private final int call;
        private final StoreOptions options;
        private final SplittableRandom random;
        private final FaultyDisk first;
        private final WriteHistory history;
        private String where;

        Case(StoreState.Made made, WalMode wal, Shape shape, Trouble trouble, int call, long seed) {
            this.trouble = trouble;
            this.call = call;
            options = shape.options(wal);
            where = "wal=" + wal + ", " + shape + ", " + trouble + ", call=" + call + ", seed=" + seed;
            random = new SplittableRandom(seed + call);
            first = made.disk().copy();
            first.setSeed(random.nextLong());
            history = made.history().copy();
        }

        /// False when there were fewer calls.
        boolean play() {
            FaultyDisk next = afterTrouble(first, trouble, call);
            boolean reached = first.calls() >= call;
            if (random.nextInt(4) == 0) {
                TWICE.incrementAndGet();
                Trouble second = RandomOptions.pick(random, Trouble.values());
                int secondCall = random.nextInt(1, SECOND_CALL_MAX);
                next.setSeed(random.nextLong());
                where += ", then " + second + ", call=" + secondCall;
                next = afterTrouble(next, second, secondCall);
            }
            next = crash(openAgain(next, "the first opening after it, "));
            openAgain(next, "the second opening after it, ");
            return reached;
        }

        /// What is left when a store was opened, written to and closed, or not, because of the trouble.
        private FaultyDisk afterTrouble(FaultyDisk disk, Trouble trouble, int call) {
            plan(disk, trouble, call);
            Allocator allocator = new Allocator();
            try {
                openWriteAndClose(disk, trouble, call, allocator);
            } catch (CorruptionException e) {
                throw new AssertionError("an opening that fails must not take its own disk for damaged, " + where, e);
            } catch (StoreException e) {
                assertThat(disk.calls()).as(where).isGreaterThanOrEqualTo(call);
            }
            assertAllIsGivenBack(disk, allocator);
            if (disk.afterCrash() != null && trouble == Trouble.THE_POWER_FAILS) {
                history.powerLost();
            }
            FaultyDisk next = disk.afterCrash() != null ? disk.afterCrash() : crash(disk);
            next.setFaults(FaultyDisk.NONE);
            return next;
        }

        private void assertAllIsGivenBack(FaultyDisk disk, Allocator allocator) {
            assertThat(allocator.allocatedBytes())
                    .as("native memory after a closing, %s", where)
                    .isZero();
            assertThat(disk.openHandles())
                    .as("open files and locks after a closing, %s", where)
                    .isZero();
            assertThat(disk.mappedBytes())
                    .as("mapped bytes after a closing, %s", where)
                    .isZero();
        }

        private static void plan(FaultyDisk disk, Trouble trouble, int call) {
            switch (trouble) {
                case THE_CALL_FAILS -> disk.setFaults((count, what) -> count == call);
                case ALL_CALLS_FAIL_FROM_THERE -> disk.setFaults((count, what) -> count >= call);
                case THE_DISK_IS_FULL, THE_DISK_IS_FULL_FOR_A_WHILE ->
                    disk.setFaults(
                            (count, what) -> count >= call && (what.startsWith("create") || what.startsWith("write")));
                case SYNCS_FAIL_FROM_THERE ->
                    disk.setFaults(
                            (count, what) -> count >= call && (what.startsWith("sync") || what.startsWith("rewrite")));
                case THE_PROCESS_IS_KILLED -> disk.setCrash((count, what) -> count == call, FaultyDisk.Crash.PROCESS);
                case THE_POWER_FAILS -> disk.setCrash((count, what) -> count == call, FaultyDisk.Crash.POWER);
            }
        }

        private void openWriteAndClose(FaultyDisk disk, Trouble trouble, int call, Allocator allocator) {
            LsmStore store = LsmStore.open(options, disk, allocator);
            boolean known = false;
            boolean failed = false;
            try {
                // what is written after an unknown number of earlier writes could not be told from them
                known = check(store) || check(store);
                for (int i = 0; known && i < WRITES; i++) {
                    int number = history.size();
                    history.add(StoreState.key(number), StoreState.valueOrNull(number));
                    write(store, number, () -> disk.calls() >= call);
                    StoreState.acknowledged(history, options.wal(), disk);
                }
            } catch (StoreException e) {
                failed = true;
            } finally {
                if (trouble == Trouble.THE_DISK_IS_FULL_FOR_A_WHILE) {
                    int calls = disk.calls();
                    disk.setFaults((count, what) -> false);
                    disk.addCalls(calls);
                }
                boolean intact = known && !failed;
                store.close();
                if (intact) {
                    history.promiseAll();
                }
            }
        }

        /// A write that waited too long is written again, unless the trouble has come: the machine may be busy.
        private static void write(Store store, int number, BooleanSupplier hasTrouble) {
            while (true) {
                try {
                    store.begin(StoreState.key(number), StoreState.valueOrNull(number))
                            .await();
                    return;
                } catch (WriteStalledException e) {
                    if (hasTrouble.getAsBoolean()) {
                        throw e;
                    }
                }
            }
        }

        /// What an opening shows was made durable by it; a read that fails says so, and then it is not known (false).
        private boolean check(Store store) {
            try {
                history.checkRecovered(store, "during " + where);
                history.promiseAll();
                return true;
            } catch (CorruptionException e) {
                throw e;
            } catch (StoreException e) {
                assertThat(e).hasMessageContaining("read");
                return false;
            }
        }

        private FaultyDisk crash(FaultyDisk crashed) {
            if (random.nextBoolean()) {
                return crashed.killProcess();
            }
            history.powerLost();
            return crashed.losePower(random);
        }

        private FaultyDisk openAgain(FaultyDisk next, String when) {
            LsmStore store;
            Allocator allocator = new Allocator();
            try {
                store = LsmStore.open(options, next, allocator);
            } catch (StoreException e) {
                throw new AssertionError("the store does not open: " + when + where, e);
            }
            try {
                history.checkRecovered(store, when + where);
                history.promiseAll();
                if (random.nextBoolean()) {
                    byte[] key = StoreState.key(history.size());
                    history.add(key, new byte[] {1});
                    store.put(key, new byte[] {1});
                    StoreState.acknowledged(history, options.wal(), next);
                }
            } finally {
                if (random.nextBoolean()) {
                    store.close();
                    history.promiseAll();
                } else {
                    FaultyDisk left = crash(next);
                    try {
                        store.close();
                    } catch (StoreException e) {
                        assertThat(e).as(where).hasMessageContaining("the disk is gone");
                    }
                    assertAllIsGivenBack(next, allocator);
                    return left;
                }
            }
            assertAllIsGivenBack(next, allocator);
            return next;
        }
    }
}
