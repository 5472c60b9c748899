package kv.cache;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.stats.CacheStats;
import com.github.benmanes.caffeine.cache.stats.ConcurrentStatsCounter;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import kv.lsm.Administration;
import kv.lsm.PendingWrite;
import kv.lsm.RangeCursor;
import kv.lsm.Store;
import kv.lsm.StoreMetrics;
import kv.lsm.WriteBatch;

/// A store with a bounded cache of whole values in front of it.
///
/// 1. Coherence: a value is put into the cache only when no write of its key overlapped with its reading or
///    writing ([WritesUnderWay]); otherwise the entry is removed. A write that fails leaves no entry behind:
///    the next read asks the store.
/// 2. The store is never called inside an operation of the cache, so nobody waits for the disk who wants
///    another key.
/// 3. A write changes an entry that is there and adds none: data that is written and never read does not drive
///    out what is.
/// 4. Bounded in entries and in bytes: each entry counts as key + value + [#ENTRY_BYTES], and as at least its
///    share of the bytes. Evicted is by the thread that adds, so the bound holds at any rate. Values over
///    [#VALUE_BYTES_MAX] and absent keys are not cached.
public final class CachedStore implements Store {
    static final int VALUE_BYTES_MAX = 64 << 10;
    /// What an entry takes besides its bytes, about.
    static final int ENTRY_BYTES = 130;
    private static final int HEAP_PARTS = 4;

    private final Store store;
    private final ConcurrentStatsCounter stats = new ConcurrentStatsCounter();
    private final Cache<Key, byte[]> cache;
    private final WritesUnderWay writes = new WritesUnderWay();

    /// A map key by content; the array is not changed after.
    private record Key(byte[] bytes, int hash) {
        Key(byte[] bytes) {
            this(bytes, Arrays.hashCode(bytes));
        }

        /// One whose array is not the caller's.
        Key copy() {
            return new Key(bytes.clone(), hash);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key key && hash == key.hash && Arrays.equals(bytes, key.bytes);
        }

        @Override
        public int hashCode() {
            return hash;
        }
    }

    /// As the other, with at most [#bytesOfHeap] bytes.
    public CachedStore(Store store, long entriesMax) {
        this(store, entriesMax, bytesOfHeap());
    }

    /// Of what is over one of the limits, that is evicted which is read least.
    public CachedStore(Store store, long entriesMax, long bytesMax) {
        this.store = store;
        int share = (int) Math.clamp(bytesMax / entriesMax, 1, Integer.MAX_VALUE);
        this.cache = Caffeine.newBuilder()
                .maximumWeight(bytesMax)
                .weigher((Key key, byte[] value) -> Math.max(share, key.bytes.length + value.length + ENTRY_BYTES))
                .executor(Runnable::run)
                .recordStats(() -> stats)
                .build();
    }

    /// A quarter of the heap; another is for unfinished requests and unread answers.
    public static long bytesOfHeap() {
        return Runtime.getRuntime().maxMemory() / HEAP_PARTS;
    }

    @Override
    public byte[] get(byte[] key) {
        return get(key, true);
    }

    @Override
    public byte[] tryGet(byte[] key, byte[] roomOrNull) {
        return get(key, false); // what is cached must not be written over
    }

    @Override
    public boolean readsWaitForDisk() {
        return store.readsWaitForDisk();
    }

    private byte[] get(byte[] key, boolean mayWait) {
        Key k = new Key(key);
        byte[] value = cache.asMap().get(k); // which counts nothing: who gets WOULD_WAIT asks again
        if (value != null) {
            stats.recordHits(1);
            return value;
        }
        long ticket = writes.before(k.hash);
        byte[] found = mayWait ? store.get(key) : store.tryGet(key);
        if (found == WOULD_WAIT) {
            return found;
        }
        stats.recordMisses(1);
        if (found != null && found.length <= VALUE_BYTES_MAX && writes.isUnchanged(k.hash, ticket)) {
            cache.asMap()
                    .compute(
                            k.copy(),
                            (same, old) -> old != null ? old : writes.isUnchanged(k.hash, ticket) ? found : null);
        }
        return found;
    }

    /// Of the keys that are not in the cache.
    @Override
    public void prefetchGets(byte[][] keys, int count) {
        byte[][] absent = new byte[count][];
        int absentCount = 0;
        for (int i = 0; i < count; i++) {
            if (!cache.asMap().containsKey(new Key(keys[i]))) {
                absent[absentCount++] = keys[i];
            }
        }
        store.prefetchGets(absent, absentCount);
    }

    @Override
    public void prefetchWrites(byte[][] keys, int count) {
        store.prefetchWrites(keys, count);
    }

    @Override
    public void put(byte[] key, byte[] value) {
        change(key, value, () -> {
            store.put(key, value);
            return PendingWrite.DONE;
        });
    }

    @Override
    public void delete(byte[] key) {
        change(key, null, () -> {
            store.delete(key);
            return PendingWrite.DONE;
        });
    }

    @Override
    public boolean writesWaitForDisk() {
        return store.writesWaitForDisk();
    }

    @Override
    public PendingWrite begin(byte[] key, byte[] valueOrNull) {
        return change(key, valueOrNull, () -> store.begin(key, valueOrNull));
    }

    /// Entries of its keys are removed.
    @Override
    public PendingWrite begin(WriteBatch batch) {
        List<Key> keys =
                batch.writes().stream().map(write -> new Key(write.key())).toList();
        keys.forEach(key -> writes.begin(key.hash));
        PendingWrite begun;
        try {
            begun = store.begin(batch);
        } catch (Throwable e) { // it may have happened
            keys.forEach(key -> end(key, null, 0));
            throw e;
        }
        return () -> {
            try {
                begun.await();
            } finally {
                keys.forEach(key -> end(key, null, 0));
            }
        };
    }

    @Override
    public PendingWrite tryBegin(byte[] key, byte[] valueOrNull) {
        return change(key, valueOrNull, () -> store.tryBegin(key, valueOrNull));
    }

    /// @param write what the store makes of it: null when nothing was begun
    private PendingWrite change(byte[] key, byte[] newValueOrNull, Supplier<PendingWrite> write) {
        Key k = new Key(key);
        long ticket = writes.begin(k.hash);
        PendingWrite begun;
        try {
            begun = write.get();
        } catch (Throwable e) { // it may have happened
            end(k, null, ticket);
            throw e;
        }
        if (begun == null) {
            writes.end(k.hash);
            return null;
        }
        if (begun == PendingWrite.DONE) {
            end(k, newValueOrNull, ticket);
            return begun;
        }
        return () -> {
            byte[] valueOrNull = null;
            try {
                begun.await();
                valueOrNull = newValueOrNull;
            } finally {
                end(k, valueOrNull, ticket);
            }
        };
    }

    /// Not `computeIfPresent`, which does not wait for a load that is just being put in.
    private void end(Key key, byte[] valueOrNull, long ticket) {
        boolean fits = valueOrNull != null && valueOrNull.length <= VALUE_BYTES_MAX;
        cache.asMap()
                .compute(
                        key,
                        (same, old) ->
                                old != null && fits && writes.wasAlone(key.hash, ticket) ? valueOrNull.clone() : null);
        writes.end(key.hash);
    }

    /// Reads the store: a range of values would only push the cache's own ones out.
    @Override
    public RangeCursor range(byte[] start, byte[] endOrNull) {
        return store.range(start, endOrNull);
    }

    @Override
    public Administration administration() {
        return store.administration(); // which changes no value
    }

    @Override
    public int openTables() {
        return store.openTables();
    }

    @Override
    public StoreMetrics metrics() {
        return store.metrics();
    }

    /// Hits, misses, loads and evictions since the start.
    public CacheStats cacheStats() {
        return cache.stats();
    }

    /// What the entries count against the limit in bytes.
    public long bytes() {
        return cache.policy().eviction().orElseThrow().weightedSize().orElse(0);
    }

    public long entries() {
        return cache.estimatedSize();
    }

    @Override
    public boolean isWritable() {
        return store.isWritable();
    }

    @Override
    public void close() {
        cache.invalidateAll();
        store.close();
    }
}
