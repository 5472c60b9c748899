package kv.lsm;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.function.Consumer;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;

/// What a disk may hold when a store is opened: made by writing to a store on a [FaultyDisk] and ending it in
/// one of many ways.
enum StoreState {
    /// nothing at all
    NEW(state -> {}),
    /// opened and closed, nothing written
    EMPTY_LOG(state -> state.session(0).close()),
    /// killed before anything was written
    UNCLOSED_EMPTY_LOG(state -> state.session(0).kill()),
    /// a few writes, closed in order
    CLOSED_LOG(state -> state.session(5).close()),
    /// a few writes, killed: nothing says that the log was synced
    UNCLOSED_LOG(state -> state.session(5).kill()),
    /// power failed: the end of the log is torn where it was not synced
    TORN_LOG(state -> state.session(8).losePower()),
    /// several logs without a table, flushed by nobody before the kill
    SEVERAL_LOGS(state -> state.withoutFlush().session(30).kill()),
    /// an empty log between others that hold records
    EMPTY_LOG_IN_BETWEEN(state -> {
        state.withoutFlush().session(4).kill();
        state.withoutFlush().session(0).writeLarge().kill();
    }),
    /// tables only: all was flushed
    TABLES(state -> state.with(WalMode.NONE).session(40).close()),
    /// tables and a replayed log
    TABLES_AND_LOG(state -> {
        state.with(WalMode.NONE).session(40).close();
        state.session(5).kill();
    }),
    /// compaction begins with the opening
    LEVEL_0_FULL(state -> {
        state.withoutCompaction().session(60).close();
        state.withoutCompaction().session(20).kill();
    }),
    /// killed when a table was complete and the manifest did not name it
    IN_THE_MIDDLE_OF_A_FLUSH(state -> state.crash(FaultyDisk.Crash.PROCESS, "kv-flush", "write MANIFEST", 2)
            .session(60)
            .end()),
    /// power lost in the same
    POWER_LOST_IN_A_FLUSH(state -> state.crash(FaultyDisk.Crash.POWER, "kv-flush", "sync MANIFEST", 2)
            .session(60)
            .end()),
    /// killed when an edit of the manifest was written and not synced
    EDIT_NOT_SYNCED(state -> state.crash(FaultyDisk.Crash.PROCESS, "kv-flush", "sync MANIFEST", 2)
            .session(60)
            .end()),
    IN_THE_MIDDLE_OF_A_COMPACTION(state -> state.crash(FaultyDisk.Crash.PROCESS, "kv-compact", "rename", 1)
            .session(120)
            .end()),
    /// killed when inputs of a compaction were being deleted
    INPUTS_NOT_DELETED(state -> state.crash(FaultyDisk.Crash.PROCESS, "kv-compact", "delete", 1)
            .session(120)
            .end()),
    /// an opening that died when its new manifest was not yet in place
    OPENING_INTERRUPTED(state -> {
        state.session(5).kill();
        state.interruptedOpening("rename MANIFEST");
    }),
    /// a first opening that died
    FIRST_OPENING_INTERRUPTED(state -> state.interruptedOpening("rename MANIFEST")),
    /// the disk was full, the store took no more writes and was closed
    DISK_WAS_FULL(state -> state.fullDisk().session(60).end());

    static final Path DIRECTORY = Path.of("/faulty");
    private static final Duration STALL_LIMIT = Duration.ofMillis(100);

    private final Consumer<Maker> steps;

    StoreState(Consumer<Maker> steps) {
        this.steps = steps;
    }

    /// A disk in this state, with what it must hold.
    Made make(WalMode wal, long seed) {
        return make(wal, Compression.NONE, seed);
    }

    Made make(WalMode wal, Compression compression, long seed) {
        Maker maker = new Maker(wal, compression, seed);
        steps.accept(maker);
        return new Made(maker.disk, maker.history);
    }

    record Made(FaultyDisk disk, WriteHistory history) {}

    static StoreOptions options(WalMode wal) {
        return StoreOptions.at(DIRECTORY).toBuilder()
                .wal(wal)
                .walInterval(Duration.ofMillis(2))
                .memtableBytes(8 << 10)
                .frozenMemtablesMax(2)
                .tableBytes(4 << 10)
                .blockBytes(256)
                .level1Bytes(8 << 10)
                .level0(2, 40, 60)
                .build();
    }

    /// Takes down what the answer to the last write of `history` promised.
    static void acknowledged(WriteHistory history, WalMode wal, FaultyDisk disk) {
        if (disk.afterCrash() != null) {
            return; // written to memory that the crash, in another thread's call, did not leave
        }
        switch (wal) {
            case NONE -> {}
            case OS, INTERVAL -> history.keepAll();
            case ALWAYS -> history.promiseAll();
        }
    }

    static byte[] key(int i) {
        return ByteBuffer.allocate(4).putInt(i * 7 % 40).array();
    }

    static byte[] valueOrNull(int i) {
        if (i % 6 == 5) {
            return null;
        }
        byte[] value = new byte[100 + i * 37 % 900];
        new SplittableRandom(i).nextBytes(value);
        return value;
    }

    /// Makes a state step by step.
    static final class Maker {
        private final WalMode wal;
        private final Compression compression;
        private final SplittableRandom random;
        private final WriteHistory history = new WriteHistory();
        private FaultyDisk disk = new FaultyDisk();
        private StoreOptions options;
        private LsmStore store;
        private GatedDisk gate;
        private boolean flushHeld;
        private boolean failed;
        private boolean losesPower;
        private boolean crashes;

        Maker(WalMode wal, Compression compression, long seed) {
            this.wal = wal;
            this.compression = compression;
            random = new SplittableRandom(seed);
            disk.setSeed(seed);
            options = ownOptions();
        }

        private StoreOptions ownOptions() {
            return options(wal).toBuilder().compression(compression).build();
        }

        Maker with(WalMode other) {
            options = options.toBuilder().wal(other).build();
            return this;
        }

        Maker withoutFlush() {
            options = options.toBuilder().frozenMemtablesMax(64).build();
            flushHeld = true;
            return this;
        }

        Maker withoutCompaction() {
            options = options.toBuilder().compaction(CompactionPolicyKind.NONE).build();
            return this;
        }

        /// In the call number `times` of a thread that does something that begins with `what`.
        Maker crash(FaultyDisk.Crash how, String thread, String what, int times) {
            losesPower = how == FaultyDisk.Crash.POWER;
            crashes = true;
            options = options.toBuilder().stallLimit(STALL_LIMIT).build(); // nobody flushes after the crash
            int[] left = {times};
            disk.setCrash(
                    new FaultyDisk.Faults() {
                        private int crashedIn;

                        @Override
                        public boolean fails(int count, String did) {
                            boolean isNext = Thread.currentThread().getName().equals(thread) && did.startsWith(what);
                            if (crashedIn == 0 && isNext && --left[0] == 0) {
                                crashedIn = count;
                            }
                            return count == crashedIn;
                        }
                    },
                    how);
            return this;
        }

        Maker fullDisk() {
            disk.setFaults((count, what) -> count > 20 && (what.startsWith("create") || what.startsWith("write")));
            options = options.toBuilder().stallLimit(STALL_LIMIT).build();
            return this;
        }

        Maker session(int writes) {
            gate = new GatedDisk(disk);
            if (flushHeld) {
                gate.hold(GatedDisk.FLUSH);
            }
            store = LsmStore.open(options, gate, new Allocator());
            history.checkRecovered(store, "while the state is made");
            history.promiseAll();
            for (int i = 0; i < writes && !failed; i++) {
                write(key(history.size()), valueOrNull(history.size()));
            }
            return this;
        }

        Maker writeLarge() {
            write(key(1_000), new byte[20 << 10]);
            return this;
        }

        private void write(byte[] key, byte[] valueOrNull) {
            history.add(key, valueOrNull);
            try {
                while (!tryToWrite(key, valueOrNull)) {}
                acknowledged(history, options.wal(), disk);
            } catch (StoreFailedException | WriteStalledException e) {
                failed = true;
            }
        }

        /// False when it waited too long and the crash is still to come: the machine may be busy.
        private boolean tryToWrite(byte[] key, byte[] valueOrNull) {
            try {
                store.begin(key, valueOrNull).await();
                return true;
            } catch (WriteStalledException e) {
                if (crashes && disk.afterCrash() == null) {
                    return false;
                }
                throw e;
            }
        }

        void close() {
            store.close();
            history.promiseAll();
            next(disk.copy());
        }

        void kill() {
            FaultyDisk left = disk.killProcess();
            closeDead();
            next(left);
        }

        void losePower() {
            FaultyDisk left = disk.losePower(random);
            history.powerLost();
            closeDead();
            next(left);
        }

        /// Ends what has failed or crashed.
        void end() {
            closeDead();
            if (disk.afterCrash() != null && losesPower) {
                history.powerLost();
            }
            next(disk.afterCrash() != null ? disk.afterCrash() : disk.killProcess());
        }

        private void closeDead() {
            gate.letGo(GatedDisk.FLUSH);
            try {
                store.close();
            } catch (StoreException e) { // says that the disk is gone
                failed = true;
            }
        }

        void interruptedOpening(String call) {
            disk.setCrash((count, what) -> what.equals(call), FaultyDisk.Crash.PROCESS);
            try {
                LsmStore.open(options, disk, new Allocator()).close();
                throw new AssertionError("the opening was to crash in: " + call);
            } catch (StoreException e) {
                next(disk.afterCrash());
            }
        }

        private void next(FaultyDisk left) {
            disk = left;
            disk.setSeed(random.nextLong());
            options = ownOptions();
            failed = false;
            flushHeld = false;
        }
    }
}
