package kv.lsm.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.Stream;

/// Our store beside RocksDB, in process: the rows of the study's engine table, alternating in one run.
///
/// ```
/// java … kv.lsm.bench.EngineBenchmark [--rounds 5] [--keys 2000000] [--syncs 20000] [--only ours|rocksdb]
///     [--directory DIR]
/// ```
///
/// Each round opens a fresh store of each contender in turn (who goes first alternates), fills it, waits for
/// its compactions, and reads. Prints each round's operations per second, then medians and the spread of the
/// ratio over the rounds.
public final class EngineBenchmark {
    enum Row {
        FILLRANDOM,
        READRANDOM,
        READRANDOM_2_THREADS,
        READMISSING,
        SCAN,
        FILLSYNC
    }

    private static final int DEFAULT_KEYS = 2_000_000;
    private static final int WARM_UP_KEYS = 300_000;

    private final Keyspace keys;
    private final int syncs;
    private final Path directory;

    private EngineBenchmark(int keys, int syncs, Path directory) {
        this.keys = new Keyspace(keys);
        this.syncs = syncs;
        this.directory = directory;
    }

    public static void main(String[] args) throws Exception {
        Arguments arguments = Arguments.parse(args, DEFAULT_KEYS);
        EngineBenchmark benchmark = new EngineBenchmark(arguments.keys(), arguments.syncs(), arguments.directory());
        Map<String, Contender.Opener> contenders = arguments.contenders();
        for (Contender.Opener opener : contenders.values()) { // lets the compiler see all the code first
            new EngineBenchmark(WARM_UP_KEYS, WARM_UP_KEYS / 100, arguments.directory()).round(opener, 0);
        }
        Results results = new Results();
        for (int round = 0; round < arguments.rounds(); round++) {
            List<String> names = new ArrayList<>(contenders.keySet());
            if (round % 2 == 1) {
                names = names.reversed();
            }
            for (String name : names) {
                results.add(name, benchmark.round(contenders.get(name), round));
                System.out.println(results.lastLine(name, round));
            }
        }
        System.out.println(results.table());
    }

    private Map<Row, Double> round(Contender.Opener opener, int round) throws Exception {
        Map<Row, Double> perSecond = new EnumMap<>(Row.class);
        int[] order = keys.order(round);
        Path data = fresh("data");
        try (Contender store = opener.open(data, Contender.Durability.OS)) {
            perSecond.put(Row.FILLRANDOM, rate(keys.size(), () -> fill(store, order)));
            store.settle();
            perSecond.put(Row.READRANDOM, rate(keys.size(), () -> read(store, order, 0, 1)));
            perSecond.put(Row.READRANDOM_2_THREADS, rate(keys.size(), () -> readInParallel(store, order)));
            perSecond.put(Row.READMISSING, rate(keys.size(), () -> readMissing(store, round)));
            perSecond.put(Row.SCAN, rate(keys.size(), () -> require(store.scan() == keys.size(), "scan")));
        }
        remove(data);
        Path synced = fresh("synced");
        try (Contender store = opener.open(synced, Contender.Durability.SYNC)) {
            perSecond.put(Row.FILLSYNC, rate(syncs, () -> {
                for (int i = 0; i < syncs; i++) {
                    store.put(Keyspace.key(order[i]), keys.value(order[i]));
                }
            }));
        }
        remove(synced);
        return perSecond;
    }

    private void fill(Contender store, int[] order) throws Exception {
        for (int i : order) {
            store.put(Keyspace.key(i), keys.value(i));
        }
    }

    private void read(Contender store, int[] order, int first, int step) throws Exception {
        for (int i = first; i < order.length; i += step) {
            // another order than the one of writing
            int key = order[order.length - 1 - i];
            byte[] value = store.get(Keyspace.key(key));
            require(value != null && value.length == Keyspace.VALUE_BYTES, "get");
        }
    }

    private void readInParallel(Contender store, int[] order) throws Exception {
        List<Thread> threads = new ArrayList<>();
        List<Throwable> failures = new ArrayList<>();
        for (int t = 0; t < 2; t++) {
            int first = t;
            threads.add(Thread.ofPlatform().start(() -> {
                try {
                    read(store, order, first, 2);
                } catch (Exception | AssertionError e) {
                    synchronized (failures) {
                        failures.add(e);
                    }
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        require(failures.isEmpty(), "parallel get: " + failures);
    }

    private void readMissing(Contender store, int seed) throws Exception {
        SplittableRandom random = new SplittableRandom(seed);
        for (int i = 0; i < keys.size(); i++) {
            require(store.get(Keyspace.absentKey(random.nextInt(keys.size()))) == null, "get of an absent key");
        }
    }

    private interface Work {
        void run() throws Exception;
    }

    private static double rate(int operations, Work work) throws Exception {
        long start = System.nanoTime();
        work.run();
        return operations / ((System.nanoTime() - start) / 1e9);
    }

    private static void require(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError("wrong answer: " + what);
        }
    }

    private Path fresh(String name) throws IOException {
        Path path = directory.resolve(name);
        remove(path);
        return Files.createDirectories(path);
    }

    static void remove(Path path) throws IOException {
        if (Files.exists(path)) {
            try (Stream<Path> files = Files.walk(path)) {
                for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(file);
                }
            }
        }
    }
}
