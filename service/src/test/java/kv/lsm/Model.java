package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/// What a store should hold: a sorted map in memory.
final class Model {
    private final NavigableMap<byte[], byte[]> entries = new TreeMap<>(Arrays::compareUnsigned);

    void put(byte[] key, byte[] value) {
        entries.put(key, value);
    }

    void delete(byte[] key) {
        entries.remove(key);
    }

    NavigableMap<byte[], byte[]> entries() {
        return entries;
    }

    void checkGet(Store store, byte[] key) {
        byte[] tried = store.tryGet(key);
        if (tried != Store.WOULD_WAIT) {
            assertThat(tried)
                    .as("get of %s without waiting", Arrays.toString(key))
                    .isEqualTo(entries.get(key));
        }
        assertThat(store.get(key)).as("get of %s", Arrays.toString(key)).isEqualTo(entries.get(key));
    }

    /// Compares the whole range, or its first `entriesMax` entries.
    void checkRange(Store store, byte[] start, byte[] endOrNull, int entriesMax) {
        NavigableMap<byte[], byte[]> wanted = entries.tailMap(start, true);
        if (endOrNull != null) {
            wanted = Arrays.compareUnsigned(start, endOrNull) < 0
                    ? entries.subMap(start, true, endOrNull, false)
                    : new TreeMap<>();
        }
        try (RangeCursor cursor = store.range(start, endOrNull)) {
            checkCursor(cursor, wanted, entriesMax);
        }
    }

    static void checkCursor(RangeCursor cursor, NavigableMap<byte[], byte[]> wanted, int entriesMax) {
        Iterator<Map.Entry<byte[], byte[]>> expected = wanted.entrySet().iterator();
        for (int i = 0; i < entriesMax; i++) {
            boolean more = expected.hasNext();
            assertThat(cursor.next()).as("entry %d of the range exists", i).isEqualTo(more);
            if (!more) {
                return;
            }
            Map.Entry<byte[], byte[]> entry = expected.next();
            assertThat(cursor.key()).as("key %d of the range", i).isEqualTo(entry.getKey());
            assertThat(cursor.value()).as("value %d of the range", i).isEqualTo(entry.getValue());
        }
    }

    void checkAll(Store store) {
        checkRange(store, new byte[0], null, Integer.MAX_VALUE);
    }
}
