package kv.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import kv.http.MemoryStore;
import kv.lsm.PendingWrite;
import kv.lsm.Store;
import org.junit.jupiter.api.Test;

/// The cache never shows what the store does not hold, whoever writes at the same time.
class CachedStoreTest {
    private static byte[] key(int number) {
        return ByteBuffer.allocate(4).putInt(number).array();
    }

    private static byte[] value(long number) {
        return ByteBuffer.allocate(8).putLong(number).array();
    }

    private static long number(byte[] value) {
        return ByteBuffer.wrap(value).getLong();
    }

    @Test
    void arraysOfCallersMayBeUsedAgainForOtherKeysAndValues() {
        MemoryStore behind = new MemoryStore();
        try (CachedStore cached = new CachedStore(behind, 10)) {
            byte[] key = "key 1".getBytes();
            byte[] value = "value 1".getBytes();
            cached.put(key, value);
            cached.get(key); // now it is cached
            cached.put(key, value);
            value[6] = '2';
            assertThat(cached.get(key)).isEqualTo("value 1".getBytes());
            key[4] = '2';
            assertThat(cached.get(key)).isNull();
            assertThat(cached.get("key 1".getBytes())).isEqualTo("value 1".getBytes());
            byte[] room = new byte[7];
            cached.tryGet("key 1".getBytes(), room);
            room[0] = 'x';
            assertThat(cached.get("key 1".getBytes())).isEqualTo("value 1".getBytes());
        }
    }

    @Test
    void aReadValueIsReadOnceFromTheStore() {
        CountingStore store = new CountingStore();
        CachedStore cache = new CachedStore(store, 10);
        store.put(key(1), value(1));
        for (int i = 0; i < 5; i++) {
            assertThat(cache.get(key(1))).isEqualTo(value(1));
        }
        assertThat(store.gets).isEqualTo(1);
        assertThat(cache.cacheStats().hitCount()).isEqualTo(4);
    }

    /// The thread that must not wait asks first, and the thread that may asks again.
    @Test
    void aReadThatWaitsForTheDiskIsOneMiss() {
        MemoryStore store = new MemoryStore() {
            @Override
            public byte[] tryGet(byte[] key, byte[] roomOrNull) {
                return WOULD_WAIT;
            }
        };
        store.put(key(1), value(1));
        try (CachedStore cache = new CachedStore(store, 10)) {
            assertThat(cache.tryGet(key(1))).isSameAs(Store.WOULD_WAIT);
            assertThat(cache.get(key(1))).isEqualTo(value(1));
            assertThat(cache.cacheStats().missCount()).isEqualTo(1);
            assertThat(cache.tryGet(key(1))).isEqualTo(value(1));
            assertThat(cache.cacheStats().hitCount()).isEqualTo(1);
            assertThat(cache.tryGet(key(2))).isSameAs(Store.WOULD_WAIT);
            assertThat(cache.get(key(2))).isNull();
            assertThat(cache.cacheStats().missCount()).isEqualTo(2);
        }
    }

    @Test
    void aPutChangesAndADeleteRemovesTheEntry() {
        CachedStore cache = new CachedStore(new MemoryStore(), 10);
        cache.put(key(1), value(1));
        assertThat(cache.get(key(1))).isEqualTo(value(1));
        cache.put(key(1), value(2));
        assertThat(cache.get(key(1))).isEqualTo(value(2));
        cache.delete(key(1));
        assertThat(cache.get(key(1))).isNull();
    }

    @Test
    void itsBytesStayWithinTheirBoundWhateverIsRead() {
        long bytesMax = 1 << 20;
        MemoryStore store = new MemoryStore();
        CachedStore cache = new CachedStore(store, 10_000, bytesMax);
        Random random = new Random(5);
        for (int i = 0; i < 3_000; i++) {
            int number = random.nextInt(200);
            if (i % 3 == 0) {
                cache.put(key(number), new byte[random.nextInt(CachedStore.VALUE_BYTES_MAX + 100)]);
            }
            cache.get(key(number));
            assertThat(cache.bytes()).isBetween(0L, bytesMax);
        }
        assertThat(cache.entries()).isGreaterThan(3);
    }

    @Test
    void itsEntriesStayWithinTheirBoundWhateverTheirSize() {
        CachedStore cache = new CachedStore(new MemoryStore(), 50, 1 << 30);
        for (int i = 0; i < 1_000; i++) {
            cache.put(key(i), value(i));
            cache.get(key(i));
            assertThat(cache.entries()).isLessThanOrEqualTo(50);
        }
    }

    @Test
    void callsThatWaitForTheStoreHoldUpNoOtherKey() throws InterruptedException {
        CountDownLatch gate = new CountDownLatch(1);
        CountDownLatch waiting = new CountDownLatch(2);
        MemoryStore slow = new MemoryStore() {
            @Override
            public byte[] get(byte[] key) {
                pass(key);
                return super.get(key);
            }

            @Override
            public void put(byte[] key, byte[] value) {
                pass(key);
                super.put(key, value);
            }

            private void pass(byte[] key) {
                if (ByteBuffer.wrap(key).getInt() < 2) {
                    waiting.countDown();
                    try {
                        gate.await();
                    } catch (InterruptedException e) {
                        throw new AssertionError(e);
                    }
                }
            }
        };
        CachedStore cache = new CachedStore(slow, 10_000);
        Thread writer = Thread.startVirtualThread(() -> cache.put(key(0), value(0)));
        Thread reader = Thread.startVirtualThread(() -> cache.get(key(1)));
        assertThat(waiting.await(1, TimeUnit.MINUTES)).isTrue();
        Thread others = Thread.startVirtualThread(() -> {
            for (int i = 2; i < 5_000; i++) { // more than the cache's table has places at that time
                cache.put(key(i), value(i));
                cache.get(key(i));
                cache.delete(key(i));
            }
        });
        boolean through = others.join(Duration.ofMinutes(1));
        gate.countDown();
        assertThat(through).as("the others are through").isTrue();
        assertThat(writer.join(Duration.ofMinutes(1))).isTrue();
        assertThat(reader.join(Duration.ofMinutes(1))).isTrue();
    }

    @Test
    void aWriteThatWouldWaitLeavesTheEntryAsItIs() {
        MemoryStore stalled = new MemoryStore() {
            @Override
            public PendingWrite tryBegin(byte[] key, byte[] valueOrNull) {
                return null;
            }
        };
        stalled.put(key(1), value(1));
        CachedStore cache = new CachedStore(stalled, 10);
        cache.get(key(1));
        assertThat(cache.tryBegin(key(1), value(2))).isNull();
        assertThat(cache.get(key(1))).isEqualTo(value(1));
        assertThat(cache.cacheStats().hitCount()).isEqualTo(1);
        cache.begin(key(1), value(3)).await();
        assertThat(cache.get(key(1))).isEqualTo(value(3));
    }

    @Test
    void onlyWhatTheCacheDoesNotHoldIsPrefetched() {
        List<byte[]> gets = new ArrayList<>();
        List<byte[]> writes = new ArrayList<>();
        CachedStore cache = new CachedStore(
                new MemoryStore() {
                    @Override
                    public void prefetchGets(byte[][] keys, int count) {
                        gets.addAll(Arrays.asList(keys).subList(0, count));
                    }

                    @Override
                    public void prefetchWrites(byte[][] keys, int count) {
                        writes.addAll(Arrays.asList(keys).subList(0, count));
                    }
                },
                10);
        cache.put(key(1), value(1));
        cache.get(key(1));
        byte[][] keys = {key(1), key(2), key(3)};
        cache.prefetchGets(keys, 2);
        cache.prefetchWrites(keys, 3);
        assertThat(gets).containsExactly(key(2));
        assertThat(writes).containsExactly(keys);
        assertThat(cache.cacheStats().requestCount())
                .as("asking for it is no use of the cache")
                .isEqualTo(1);
    }

    @Test
    void anEntryIsRemovedAtTheEndOfAWriteThatWasBegun() {
        CachedStore cache = new CachedStore(new PatientStore(), 10);
        cache.put(key(1), value(1));
        assertThat(cache.get(key(1))).isEqualTo(value(1));
        PendingWrite second = cache.begin(key(1), value(2));
        PendingWrite third = cache.begin(key(1), value(3));
        assertThat(cache.get(key(1))).isEqualTo(value(1));
        third.await();
        assertThat(cache.get(key(1))).isEqualTo(value(3));
        second.await();
        assertThat(cache.get(key(1))).as("it was begun before the third").isEqualTo(value(3));
        cache.begin(key(1), null).await();
        assertThat(cache.get(key(1))).isNull();
        assertThat(cache.writesWaitForDisk()).isTrue();
    }

    @Test
    void concurrentReadersNeverSeeAValueOlderThanAnAcknowledgedWriteThatWasBegun() throws InterruptedException {
        for (int round = 0; round < 5; round++) {
            CachedStore cache = new CachedStore(new PatientStore(), 8);
            assertThat(staleRead(new MemoryStore() {
                        @Override
                        public byte[] get(byte[] key) {
                            return cache.get(key);
                        }

                        @Override
                        public void put(byte[] key, byte[] value) {
                            cache.begin(key, value).await();
                        }
                    }))
                    .isNull();
        }
    }

    @Test
    void writesThatNobodyReadsAddNoEntry() {
        CachedStore cache = new CachedStore(new MemoryStore(), 10);
        for (int i = 0; i < 100; i++) {
            cache.put(key(i), value(i));
        }
        assertThat(cache.entries()).isZero();
    }

    @Test
    void largeValuesAreServedButNotHeld() {
        CachedStore cache = new CachedStore(new MemoryStore(), 10);
        byte[] large = new byte[CachedStore.VALUE_BYTES_MAX + 1];
        cache.put(key(1), large);
        assertThat(cache.get(key(1))).isEqualTo(large);
        assertThat(cache.entries()).isZero();
        cache.put(key(1), value(1));
        cache.get(key(1));
        cache.put(key(1), large);
        assertThat(cache.get(key(1))).isEqualTo(large);
    }

    @Test
    void aWriteThatFailsAfterItHappenedLeavesNoOldEntry() {
        CountingStore store = new CountingStore();
        CachedStore cache = new CachedStore(store, 10);
        cache.put(key(1), value(1));
        cache.get(key(1));
        store.failAfterWrite = true;
        assertThatThrownBy(() -> cache.put(key(1), value(2))).hasMessage("planted");
        assertThat(cache.get(key(1))).isEqualTo(value(2));
    }

    @Test
    void concurrentReadersNeverSeeAValueOlderThanAnAcknowledgedWrite() throws InterruptedException {
        for (int round = 0; round < 5; round++) {
            assertThat(staleRead(new CachedStore(new MemoryStore(), 8))).isNull();
        }
    }

    @Test
    void theCheckFindsACacheThatLoadsAndWritesInTwoSteps() throws InterruptedException {
        String fault = null;
        for (int round = 0; round < 200 && fault == null; round++) {
            fault = staleRead(new TwoStepCache());
        }
        assertThat(fault).isNotNull();
    }

    /// One writer per key writes 1, 2, 3, …; readers check that a value is not older than what was acknowledged
    /// before they began. Null, or what was wrong.
    private static String staleRead(Store store) throws InterruptedException {
        int keys = 4;
        int writes = 3_000;
        long[] acknowledged = new long[keys * 16];
        AtomicReference<String> fault = new AtomicReference<>();
        List<Thread> threads = new ArrayList<>();
        var handle = java.lang.invoke.MethodHandles.arrayElementVarHandle(long[].class);
        for (int k = 0; k < keys; k++) {
            int own = k;
            threads.add(new Thread(() -> {
                for (long i = 1; i <= writes; i++) {
                    store.put(key(own), value(i));
                    handle.setVolatile(acknowledged, own * 16, i);
                }
            }));
        }
        for (int r = 0; r < 4; r++) {
            long seed = System.nanoTime() + r;
            threads.add(new Thread(() -> {
                Random random = new Random(seed);
                for (int i = 0; i < 4 * writes; i++) {
                    int k = random.nextInt(keys);
                    long before = (long) handle.getVolatile(acknowledged, k * 16);
                    byte[] value = store.get(key(k));
                    long seen = value == null ? 0 : number(value);
                    if (seen < before) {
                        fault.set(
                                "key " + k + ": read " + seen + " after " + before + " was acknowledged, seed " + seed);
                    }
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            assertThat(thread.join(Duration.ofMinutes(1))).isTrue();
        }
        return fault.get();
    }

    /// The mistake that the cache must not make: look, load, keep, with a write in between.
    private static final class TwoStepCache extends MemoryStore {
        private final ConcurrentHashMap<Integer, byte[]> cache = new ConcurrentHashMap<>();

        @Override
        public byte[] get(byte[] key) {
            int name = ByteBuffer.wrap(key).getInt();
            byte[] held = cache.get(name);
            if (held != null) {
                return held;
            }
            byte[] loaded = super.get(key);
            if (loaded != null) {
                Thread.yield(); // a busy machine lets others run here of itself, an idle one hardly ever
                cache.put(name, loaded);
            }
            return loaded;
        }

        @Override
        public void put(byte[] key, byte[] value) {
            super.put(key, value);
            cache.remove(ByteBuffer.wrap(key).getInt());
        }
    }

    /// As the real one with every write synced: those that were begun become visible, in their order, when one
    /// of them is awaited.
    private static final class PatientStore extends MemoryStore {
        private final Queue<Runnable> begun = new ArrayDeque<>();

        @Override
        public boolean writesWaitForDisk() {
            return true;
        }

        @Override
        public PendingWrite begin(byte[] key, byte[] valueOrNull) {
            synchronized (begun) {
                begun.add(valueOrNull == null ? () -> delete(key) : () -> put(key, valueOrNull));
            }
            return () -> {
                synchronized (begun) {
                    for (Runnable write = begun.poll(); write != null; write = begun.poll()) {
                        write.run();
                    }
                }
            };
        }
    }

    private static final class CountingStore extends MemoryStore {
        private int gets;
        private boolean failAfterWrite;

        @Override
        public byte[] get(byte[] key) {
            gets++;
            return super.get(key);
        }

        @Override
        public void put(byte[] key, byte[] value) {
            super.put(key, value);
            if (failAfterWrite) {
                throw new IllegalStateException("planted");
            }
        }
    }
}
