package kv;

import java.util.Map;
import java.util.TreeMap;
import kv.lsm.LsmStore;
import kv.lsm.RangeCursor;
import kv.lsm.Store;
import kv.lsm.StoreOptions;

/// What a store holds that nobody has open, as text.
public final class Entries {
    private Entries() {}

    public static Map<String, String> of(StoreOptions options) {
        Map<String, String> found = new TreeMap<>();
        try (Store opened = LsmStore.open(options);
                RangeCursor cursor = opened.range(new byte[0], null)) {
            while (cursor.next()) {
                found.put(new String(cursor.key()), new String(cursor.value()));
            }
        }
        return found;
    }
}
