package kv.lsm.bench;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import kv.lsm.LsmStore;
import kv.lsm.RangeCursor;
import kv.lsm.Store;
import kv.lsm.StoreMetrics;
import kv.lsm.StoreOptions;

/// Mixed load on far more data than heap, every answer checked, with the process's memory printed as time goes
/// on.
///
/// ```
/// java -Xmx128m … kv.lsm.bench.EngineSoak [--keys 10000000] [--minutes 20] [--directory DIR]
/// ```
///
/// Four threads write, delete, read and scan; each owns a quarter of the keys and knows what they hold.
public final class EngineSoak {
    private static final int DEFAULT_KEYS = 10_000_000;
    private static final int THREADS = 4;
    private static final int VALUE_BYTES_MAX = 300;
    private static final int REPORT_SECONDS = 10;

    private final Store store;
    /// Version of each key's value; 0 for absent. Each entry is used by its owner only.
    private final byte[] versions;
    private final LongAdder operations = new LongAdder();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private volatile boolean stop;

    private EngineSoak(Store store, int keys) {
        this.store = store;
        versions = new byte[keys];
    }

    public static void main(String[] args) throws Exception {
        Arguments arguments = Arguments.parse(args, DEFAULT_KEYS);
        Path directory = arguments.directory().resolve("soak");
        EngineBenchmark.remove(directory);
        StoreOptions options = StoreOptions.at(directory);
        EngineSoak soak;
        try (Store store = LsmStore.open(options)) {
            soak = new EngineSoak(store, arguments.keys());
            soak.run(arguments.minutes());
        }
        try (Store store = LsmStore.open(options)) {
            EngineSoak again = new EngineSoak(store, arguments.keys());
            System.arraycopy(soak.versions, 0, again.versions, 0, soak.versions.length);
            again.checkAll();
        }
        EngineBenchmark.remove(directory);
    }

    private void run(double minutes) throws Exception {
        fill();
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < THREADS; t++) {
            int owner = t;
            threads.add(Thread.ofPlatform().start(() -> {
                try {
                    work(owner, new SplittableRandom(owner));
                } catch (Throwable e) {
                    failure.compareAndSet(null, e);
                    stop = true;
                }
            }));
        }
        long end = System.nanoTime() + (long) (minutes * 60e9);
        while (System.nanoTime() < end && !stop) {
            Thread.sleep(REPORT_SECONDS * 1_000);
            report();
        }
        stop = true;
        for (Thread thread : threads) {
            thread.join();
        }
        if (failure.get() != null) {
            throw new AssertionError("the soak failed", failure.get());
        }
    }

    private void fill() {
        Scramble scramble = new Scramble(versions.length);
        for (int i = 0; i < versions.length; i++) {
            put(scramble.at(i), (byte) 1);
        }
        report();
    }

    private void work(int owner, SplittableRandom random) {
        while (!stop) {
            int key = random.nextInt(versions.length / THREADS) * THREADS + owner;
            int choice = random.nextInt(100);
            if (choice < 30) {
                put(key, (byte) random.nextInt(1, 128));
            } else if (choice < 35) {
                store.delete(Keyspace.key(key));
                versions[key] = 0;
            } else if (choice < 98) {
                require(Arrays.equals(store.get(Keyspace.key(key)), value(key, versions[key])), "get of key " + key);
            } else {
                scan(owner, key);
            }
            operations.increment();
        }
    }

    private void put(int key, byte version) {
        store.put(Keyspace.key(key), value(key, version));
        versions[key] = version;
    }

    /// Checks the next hundred entries: ordered, and the own ones as they should be.
    private void scan(int owner, int first) {
        try (RangeCursor cursor = store.range(Keyspace.key(first), null)) {
            int expected = first;
            for (int i = 0; i < 100 && cursor.next(); i++) {
                int key = Integer.parseInt(new String(cursor.key()));
                require(key >= expected, "order of key " + key);
                for (; expected < key; expected++) {
                    require(expected % THREADS != owner || versions[expected] == 0, "range without key " + expected);
                }
                if (key % THREADS == owner) {
                    require(Arrays.equals(cursor.value(), value(key, versions[key])), "range at key " + key);
                }
                expected = key + 1;
            }
        }
    }

    private static byte[] value(int key, byte version) {
        if (version == 0) {
            return null;
        }
        byte[] value = new byte[8 + (key * 31 + version * 7 & 0x7FFFFFFF) % VALUE_BYTES_MAX];
        Arrays.fill(value, version);
        ByteBuffer.wrap(value).putInt(key);
        return value;
    }

    private void checkAll() {
        try (RangeCursor cursor = store.range(new byte[0], null)) {
            for (int key = 0; key < versions.length; key++) {
                if (versions[key] != 0) {
                    require(cursor.next(), "end before key " + key);
                    require(Arrays.equals(cursor.key(), Keyspace.key(key)), "key " + key + " after reopening");
                    require(
                            Arrays.equals(cursor.value(), value(key, versions[key])),
                            "value of " + key + " after reopening");
                }
            }
            require(!cursor.next(), "more entries than written");
        }
        System.out.println("all entries checked after reopening");
    }

    private static void require(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError("wrong answer: " + what);
        }
    }

    private void report() {
        StoreMetrics metrics = store.metrics();
        long heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
        System.out.printf(
                Locale.ROOT,
                "%,d operations, heap %,d MB, off-heap %,d MB, mapped %,d MB, anonymous resident %,d MB, "
                        + "flushes %d, compactions" + " %d, levels %s, stalls %s%n",
                operations.sum(),
                heap >> 20,
                metrics.offHeapBytes() >> 20,
                metrics.mappedBytes() >> 20,
                anonymousResidentBytes() >> 20,
                metrics.flushes(),
                metrics.compactions(),
                metrics.levels().stream()
                        .map(level -> level.runs() + "×" + (level.bytes() >> 20) + "MB")
                        .toList(),
                metrics.stalls());
    }

    private static long anonymousResidentBytes() {
        try {
            return Files.readAllLines(Path.of("/proc/self/status")).stream()
                    .filter(line -> line.startsWith("RssAnon:"))
                    .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
                    .findFirst()
                    .orElse(-1);
        } catch (IOException e) {
            return -1; // not Linux
        }
    }
}
