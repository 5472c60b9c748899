package kv.lsm;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;

/// Writes to a store on a [FaultyDisk], crashes it, and checks what the next opening finds: the state after
/// some first part of the history, never less than was promised, never a mixture.
final class CrashHistory {
    private final SplittableRandom random;
    private final RandomKeys keys;
    private final Path directory = Path.of("/faulty");
    private final WriteHistory history = new WriteHistory();
    private final boolean syncLies;
    private FaultyDisk disk = new FaultyDisk();
    private StoreOptions options;
    private LsmStore store;
    /// The last writes of the history that were begun and not awaited.
    private int begunLast;

    /// @param syncLies plants a fault: syncs do nothing
    CrashHistory(long seed, boolean syncLies) {
        random = new SplittableRandom(seed);
        keys = new RandomKeys(random);
        this.syncLies = syncLies;
    }

    /// @param walOrNull the same mode for all cycles, or null for any
    void play(int cycles, WalMode walOrNull) {
        for (int i = 0; i < cycles; i++) {
            open(walOrNull);
            begunLast = 0;
            write(random.nextInt(600));
            crash();
        }
        open(walOrNull);
        store.close();
    }

    private void open(WalMode walOrNull) {
        if (syncLies) {
            disk.setSyncLies();
        }
        options = RandomOptions.draw(random, directory);
        if (walOrNull != null) {
            options = options.toBuilder().wal(walOrNull).build();
        }
        Allocator allocator = new Allocator();
        store = LsmStore.open(options, disk, allocator);
        history.checkRecovered(store, "wal=" + options.wal());
        if (!syncLies) {
            history.promiseAll(); // what an opening shows stays
        }
    }

    private void write(int count) {
        for (int i = 0; i < count; i++) {
            if (random.nextInt(20) == 0) {
                writeBatch(random.nextInt(1, 20));
                begunLast = 0;
            } else if (random.nextInt(20) == 0) {
                writeTogether(random.nextInt(20), random.nextInt(10) != 0);
            } else {
                byte[] key = keys.next();
                byte[] value = random.nextInt(4) == 0 ? null : keys.value();
                if (value == null) {
                    store.delete(key);
                } else {
                    store.put(key, value);
                }
                history.add(key, value);
                begunLast = 0; // a write makes all before it durable with it
            }
            if (options.wal() == WalMode.ALWAYS) {
                history.promise(history.size() - begunLast);
            } else if (options.wal() == WalMode.INTERVAL && random.nextInt(200) == 0) {
                waitForSync();
            }
        }
    }

    /// Begins several writes and awaits them, or does not.
    private void writeTogether(int count, boolean isAwaited) {
        List<PendingWrite> begun = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            byte[] key = keys.next();
            byte[] value = random.nextInt(4) == 0 ? null : keys.value();
            begun.add(store.begin(key, value));
            history.add(key, value);
        }
        if (isAwaited) {
            begun.forEach(PendingWrite::await);
        }
        begunLast = isAwaited ? 0 : count;
    }

    private void writeBatch(int count) {
        List<WriteBatch.Write> writes = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            byte[] key = keys.next();
            byte[] value = random.nextInt(4) == 0 ? null : keys.value();
            writes.add(new WriteBatch.Write(key, value));
            history.add(key, value, i == count - 1);
        }
        store.begin(new WriteBatch(writes)).await();
    }

    /// What was written before syncs of all logs that began later is promised. Each round of syncs has one for each
    /// memtable at most, and the first may have begun before.
    private void waitForSync() {
        int before = history.size();
        int ofRound = options.frozenMemtablesMax() + 1;
        for (int i = 0; i < 2 * ofRound + 1; i++) {
            long syncs = store.metrics().walSyncs();
            byte[] key = keys.next();
            store.delete(key);
            history.add(key, null);
            while (store.metrics().walSyncs() == syncs) {
                Thread.onSpinWait();
            }
        }
        history.promise(before);
    }

    private void crash() {
        FaultyDisk crashed = disk;
        if (random.nextBoolean()) {
            if (options.wal() != WalMode.NONE) {
                history.promise(history.size() - (options.wal() == WalMode.ALWAYS ? begunLast : 0));
            }
            disk = crashed.killProcess();
        } else {
            disk = crashed.losePower(random);
        }
        try {
            store.close();
        } catch (StoreException e) {
            // the disk is gone: that is what the store says
        }
    }
}
