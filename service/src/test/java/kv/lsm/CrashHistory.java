package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeMap;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;

/// Writes to a store on a [FaultyDisk], crashes it, and checks what the next opening finds: the state after some first part of the
/// history, never less than was promised, never a mixture.
final class CrashHistory {
    private record Write(byte[] key, byte[] valueOrNull) {}

    private final SplittableRandom random;
    private final RandomKeys keys;
    private final Path directory = Path.of("/faulty");
    private final List<Write> history = new ArrayList<>();
    private final boolean syncLies;
    private FaultyDisk disk = new FaultyDisk();
    private StoreOptions options;
    private LsmStore store;
    /// Writes that must survive whatever happens.
    private int promised;
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
        checkRecovered();
    }

    private void write(int count) {
        for (int i = 0; i < count; i++) {
            if (random.nextInt(20) == 0) {
                writeTogether(random.nextInt(20), random.nextInt(10) != 0);
            } else {
                byte[] key = keys.next();
                byte[] value = random.nextInt(4) == 0 ? null : keys.value();
                if (value == null) {
                    store.delete(key);
                } else {
                    store.put(key, value);
                }
                history.add(new Write(key, value));
                begunLast = 0; // a write makes all before it durable with it
            }
            if (options.wal() == WalMode.ALWAYS) {
                promised = history.size() - begunLast;
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
            history.add(new Write(key, value));
        }
        if (isAwaited) {
            begun.forEach(PendingWrite::await);
        }
        begunLast = isAwaited ? 0 : count;
    }

    /// What was written before a sync that began later is promised.
    private void waitForSync() {
        int before = history.size();
        for (int i = 0; i < 2; i++) {
            long syncs = store.metrics().walSyncs();
            while (store.metrics().walSyncs() == syncs) {
                byte[] key = keys.next();
                store.delete(key);
                history.add(new Write(key, null));
                Thread.onSpinWait();
            }
        }
        promised = before;
    }

    private void crash() {
        FaultyDisk crashed = disk;
        if (random.nextBoolean()) {
            if (options.wal() != WalMode.NONE) {
                promised = history.size() - (options.wal() == WalMode.ALWAYS ? begunLast : 0);
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

    /// Finds the first part of the history that gives what the store holds; the history continues from there.
    private void checkRecovered() {
        TreeMap<byte[], byte[]> found = new TreeMap<>(Arrays::compareUnsigned);
        try (RangeCursor cursor = store.range(new byte[0], null)) {
            while (cursor.next()) {
                found.put(cursor.key(), cursor.value());
            }
        }
        TreeMap<byte[], byte[]> state = new TreeMap<>(Arrays::compareUnsigned);
        int mismatches = found.size();
        int recovered = mismatches == 0 ? 0 : -1;
        for (int i = 0; i < history.size(); i++) {
            Write write = history.get(i);
            byte[] wanted = found.get(write.key);
            mismatches += Arrays.equals(state.get(write.key), wanted) ? 1 : 0;
            if (write.valueOrNull == null) {
                state.remove(write.key);
            } else {
                state.put(write.key, write.valueOrNull);
            }
            mismatches -= Arrays.equals(state.get(write.key), wanted) ? 1 : 0;
            if (mismatches == 0) {
                recovered = i + 1;
            }
        }
        assertThat(recovered)
                .as("writes recovered of %d, wal=%s, entries found=%d", history.size(), options.wal(), found.size())
                .isGreaterThanOrEqualTo(promised);
        history.subList(recovered, history.size()).clear();
        for (byte[] key : found.keySet()) {
            assertThat(store.get(key)).isEqualTo(found.get(key));
        }
    }
}
