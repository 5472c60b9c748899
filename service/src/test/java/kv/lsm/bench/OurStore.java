package kv.lsm.bench;

import java.nio.file.Path;
import kv.lsm.LsmStore;
import kv.lsm.RangeCursor;
import kv.lsm.Store;
import kv.lsm.StoreMetrics;
import kv.lsm.StoreOptions;
import kv.lsm.WalMode;

/// Our store with its defaults but for the log: 64 MiB memtables (one active, two frozen), 4 KiB blocks, 10 filter bits per
/// key, mapped tables, no compression.
final class OurStore implements Contender {
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

    @Override
    public void settle() throws InterruptedException {
        int quiet = 0;
        for (StoreMetrics before = store.metrics(); quiet < 3; ) {
            Thread.sleep(200);
            StoreMetrics now = store.metrics();
            boolean idle = now.frozenMemtables() == 0
                    && now.flushes() == before.flushes()
                    && now.compactions() == before.compactions();
            boolean level0Calm = now.levels().stream().noneMatch(level -> level.level() == 0 && level.runs() >= 4);
            quiet = idle && level0Calm ? quiet + 1 : 0;
            before = now;
        }
    }

    StoreMetrics metrics() {
        return store.metrics();
    }

    @Override
    public void close() {
        store.close();
    }
}
