package kv.lsm;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Memory;

/// Entries of tests in native memory, which is never freed: tests are short.
public final class Records implements EntryIterator {
    private static final Allocator ALLOCATOR = new Allocator();

    private final Iterator<Map.Entry<byte[], byte[]>> entries;
    private Map.Entry<byte[], byte[]> entry;
    private long key;
    private long value;

    /// @param entries in key order; a null value is a tombstone
    public Records(NavigableMap<byte[], byte[]> entries) {
        this.entries = entries.entrySet().iterator();
    }

    public static long nativeCopy(byte[] bytes) {
        long address = ALLOCATOR.allocate(bytes.length + 8L);
        Memory.copy(bytes, address);
        return address;
    }

    public static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /// All entries as `key=value` or `key=†`.
    public static List<String> list(EntryIterator iterator) {
        List<String> list = new ArrayList<>();
        try (iterator) {
            while (iterator.next()) {
                String key = text(iterator.keyAddress(), iterator.keyLength());
                boolean tombstone = iterator.valueLength() == TOMBSTONE;
                list.add(key + "=" + (tombstone ? "†" : text(iterator.valueAddress(), iterator.valueLength())));
            }
        }
        return list;
    }

    private static String text(long address, int bytes) {
        return new String(Memory.copyOf(address, bytes), StandardCharsets.UTF_8);
    }

    @Override
    public boolean next() {
        if (!entries.hasNext()) {
            return false;
        }
        entry = entries.next();
        key = nativeCopy(entry.getKey());
        value = entry.getValue() == null ? 0 : nativeCopy(entry.getValue());
        return true;
    }

    @Override
    public long keyAddress() {
        return key;
    }

    @Override
    public int keyLength() {
        return entry.getKey().length;
    }

    @Override
    public long valueAddress() {
        return value;
    }

    @Override
    public int valueLength() {
        return entry.getValue() == null ? TOMBSTONE : entry.getValue().length;
    }

    @Override
    public void close() {}
}
