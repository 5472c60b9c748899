package kv.cache;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.stats.CacheStats;
import java.util.Arrays;
import kv.lsm.Administration;
import kv.lsm.PendingWrite;
import kv.lsm.RangeCursor;
import kv.lsm.Store;
import kv.lsm.StoreMetrics;

/// A store with a bounded cache of whole values in front of it.
///
/// Coherence: every change of a key, in the store and in the cache, happens inside one atomic operation of the cache on
/// that key, and so does the loading of an absent one. So a reader can never put back a value that it read before a writer
/// changed it, and a write that fails leaves no entry behind: the next read asks the store.
///
/// A write changes an entry that is there and adds none: data that is written and never read does not drive out what is.
/// Values over [#VALUE_BYTES_MAX] and absent keys are not cached. Heap: entries × (key + value + about 130 bytes).
public final class CachedStore implements Store {
    static final int VALUE_BYTES_MAX = 64 << 10;

    private final Store store;
    private final Cache<Key, byte[]> cache;

    /// A map key by content; the array is not changed after.
    private record Key(byte[] bytes, int hash) {
        Key(byte[] bytes) {
            this(bytes, Arrays.hashCode(bytes));
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

    /// @param entriesMax more are evicted, those first that are read least
    public CachedStore(Store store, long entriesMax) {
        this.store = store;
        this.cache = Caffeine.newBuilder().maximumSize(entriesMax).recordStats().build();
    }

    @Override
    public byte[] get(byte[] key) {
        byte[][] uncached = new byte[1][];
        byte[] value = cache.get(new Key(key), k -> {
            byte[] found = store.get(k.bytes);
            if (found != null && found.length > VALUE_BYTES_MAX) {
                uncached[0] = found;
                return null;
            }
            return found;
        });
        return value == null ? uncached[0] : value;
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
        change(key, value, () -> store.put(key, value));
    }

    @Override
    public void delete(byte[] key) {
        change(key, null, () -> store.delete(key));
    }

    @Override
    public boolean writesWaitForDisk() {
        return store.writesWaitForDisk();
    }

    /// An entry that is there is removed at the end of the write: which of several that were begun is the last, only the store knows.
    @Override
    public PendingWrite begin(byte[] key, byte[] valueOrNull) {
        PendingWrite begun = store.begin(key, valueOrNull);
        return () -> change(key, null, begun::await);
    }

    private void change(byte[] key, byte[] newValue, Runnable write) {
        RuntimeException[] failure = new RuntimeException[1];
        cache.asMap().compute(new Key(key), (k, old) -> {
            try {
                write.run();
            } catch (RuntimeException e) {
                failure[0] = e; // thrown from here it would keep the old entry, and the write may have happened
                return null;
            }
            return old == null || newValue == null || newValue.length > VALUE_BYTES_MAX ? null : newValue;
        });
        if (failure[0] != null) {
            throw failure[0];
        }
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
    public StoreMetrics metrics() {
        return store.metrics();
    }

    /// Hits, misses, loads and evictions since the start.
    public CacheStats cacheStats() {
        return cache.stats();
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
