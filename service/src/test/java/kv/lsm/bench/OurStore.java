package kv.lsm.bench;

import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Set;
import kv.lsm.LsmStore;
import kv.lsm.RangeCursor;
import kv.lsm.Store;
import kv.lsm.StoreMetrics;
import kv.lsm.StoreOptions;
import kv.lsm.WalMode;

/// Our store with its defaults but for the log: 64 MiB memtables (one active, two frozen), 4 KiB blocks, 10
/// filter bits per key, mapped tables, no compression.
final class OurStore implements Contender {
    private static final long SETTLE_NANOS_MAX = 300_000_000_000L;
    private static final Set<String> BACKGROUND = Set.of("kv-flush", "kv-compact");

    private final Store store;

    OurStore(Path directory, Durability durability) {
        this(StoreOptions.at(directory).toBuilder()
                .wal(durability == Durability.SYNC ? WalMode.ALWAYS : WalMode.OS)
                .build());
    }

    OurStore(StoreOptions options) {
        store = LsmStore.open(options);
    }

    @Override
    public void put(byte[] key, byte[] value) {
        store.put(key, value);
    }

    @Override
    public byte[] get(byte[] key) {
        return store.get(key);
    }

    @Override
    public long scan() {
        long count = 0;
        try (RangeCursor cursor = store.range(new byte[0], null)) {
            while (cursor.next()) {
                if (cursor.key().length + cursor.value().length > 0) {
                    count++;
                }
            }
        }
        return count;
    }

    /// Until no memtable waits and the threads for flush and compaction have waited for work in three looks:
    /// the counters tell of a compaction only when it has ended, and how many runs may stay is the policy's
    /// affair. A store that does not come to rest ends the benchmark.
    @Override
    public void settle() throws InterruptedException {
        long begun = System.nanoTime();
        int quiet = 0;
        for (StoreMetrics before = store.metrics(); quiet < 3; ) {
            Thread.sleep(200);
            StoreMetrics now = store.metrics();
            boolean idle = now.frozenMemtables() == 0
                    && now.flushes() == before.flushes()
                    && now.compactions() == before.compactions();
            quiet = idle && backgroundThreadsWait() ? quiet + 1 : 0;
            before = now;
            if (System.nanoTime() - begun > SETTLE_NANOS_MAX) {
                throw new IllegalStateException("flush or compaction did not come to rest in five minutes");
            }
        }
    }

    /// Another build's threads may wait for a class of another name: WorkSignal was Work.
    private static boolean backgroundThreadsWait() {
        return Arrays.stream(ManagementFactory.getThreadMXBean().dumpAllThreads(false, false))
                .filter(thread -> BACKGROUND.contains(thread.getThreadName()))
                .allMatch(thread -> String.valueOf(thread.getLockName()).startsWith("kv.lsm.Work"));
    }

    StoreMetrics metrics() {
        return store.metrics();
    }

    @Override
    public void close() {
        store.close();
    }
}
