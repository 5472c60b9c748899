package kv.http;

import java.time.Duration;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import kv.lsm.RangeCursor;
import kv.lsm.StallCause;
import kv.lsm.Store;
import kv.lsm.StoreClosedException;
import kv.lsm.StoreMetrics;

/// A store in a map, for tests of what is in front of a store. [#beforeEach] runs inside every call, so that a
/// test can make the store slow or fail.
public class MemoryStore implements Store {
    private final ConcurrentNavigableMap<byte[], byte[]> entries = new ConcurrentSkipListMap<>(Arrays::compareUnsigned);
    private final AtomicLong puts = new AtomicLong();
    final AtomicInteger openCursors = new AtomicInteger();
    volatile Runnable beforeEach = () -> {};
    private volatile boolean closed;

    @Override
    public byte[] get(byte[] key) {
        enter();
        byte[] value = entries.get(key);
        return value == null ? null : value.clone();
    }

    @Override
    public void put(byte[] key, byte[] value) {
        enter();
        puts.incrementAndGet();
        entries.put(key.clone(), value.clone());
    }

    @Override
    public void delete(byte[] key) {
        enter();
        entries.remove(key);
    }

    @Override
    public RangeCursor range(byte[] start, byte[] endOrNull) {
        enter();
        byte[] end = endOrNull != null && Arrays.compareUnsigned(start, endOrNull) > 0 ? start : endOrNull;
        var part = end == null ? entries.tailMap(start) : entries.subMap(start, end);
        Iterator<Map.Entry<byte[], byte[]>> iterator = part.entrySet().iterator();
        openCursors.incrementAndGet();
        return new PlainCursor() {
            private Map.Entry<byte[], byte[]> current;
            private boolean open = true;

            @Override
            boolean advance() {
                enter();
                current = iterator.hasNext() ? iterator.next() : null;
                return current != null;
            }

            @Override
            public byte[] key() {
                return current.getKey();
            }

            @Override
            public byte[] value() {
                return current.getValue();
            }

            @Override
            public void close() {
                if (open) {
                    open = false;
                    openCursors.decrementAndGet();
                }
            }
        };
    }

    @Override
    public StoreMetrics metrics() {
        Map<StallCause, StoreMetrics.Stalls> stalls = new EnumMap<>(StallCause.class);
        for (StallCause cause : StallCause.values()) {
            stalls.put(cause, new StoreMetrics.Stalls(0, 0));
        }
        return new StoreMetrics(
                0,
                puts.get(),
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                stalls,
                List.of(),
                0,
                0,
                0,
                0,
                0,
                openCursors.get(),
                false,
                false,
                new StoreMetrics.Recovery(0, 0, 0, Duration.ZERO));
    }

    @Override
    public boolean isWritable() {
        return !closed;
    }

    @Override
    public void close() {
        closed = true;
    }

    private void enter() {
        if (closed) {
            throw new StoreClosedException();
        }
        beforeEach.run();
    }
}
