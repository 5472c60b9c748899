package kv.lsm.bench;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import kv.lsm.CompactionPolicyKind;
import kv.lsm.LsmStore;
import kv.lsm.Store;
import kv.lsm.StoreMetrics;
import kv.lsm.StoreOptions;
import kv.lsm.WalMode;

/// What the store costs besides time: write, read and space amplification, heap per entry, recovery.
///
/// ```
/// java -Xmx128m … kv.lsm.bench.EngineCosts [--keys 10000000] [--only leveled|tiered|recovery] [--directory DIR]
/// ```
///
/// Fills a store in random order, overwrites half of it in random order, reads at random, and then writes
/// [#PACED_PER_S] a second for [#PACED_S] seconds; for each compaction policy. Then opens a store whose process died
/// with 1 GB in its write-ahead logs, [#RECOVERIES] times.
public final class EngineCosts {
    private static final int DEFAULT_KEYS = 10_000_000;
    private static final long LOG_BYTES = 1_000_000_000;
    private static final int READS = 500_000;
    private static final int RECOVERIES = 3;
    private static final int PACED_PER_S = 20_000;
    private static final int PACED_S = 120;
    private static final List<String> PARTS = List.of("leveled", "tiered", "recovery");

    private final Keyspace keys;
    private final Path directory;

    private EngineCosts(Keyspace keys, Path directory) {
        this.keys = keys;
        this.directory = directory;
    }

    public static void main(String[] args) throws Exception {
        Arguments arguments = Arguments.parse(args, DEFAULT_KEYS);
        EngineCosts costs = new EngineCosts(
                new Keyspace(arguments.keys()), arguments.directory().resolve("costs"));
        System.out.printf(
                Locale.ROOT,
                "%,d keys of %d + %d bytes, heap at most %,d MB%n",
                arguments.keys(),
                Keyspace.KEY_BYTES,
                Keyspace.VALUE_BYTES,
                Runtime.getRuntime().maxMemory() >> 20);
        List<String> parts = arguments.onlyOrNull() == null ? PARTS : List.of(arguments.onlyOrNull());
        for (String part : parts) {
            switch (part) {
                case "leveled" -> costs.amplification(CompactionPolicyKind.LEVELED);
                case "tiered" -> costs.amplification(CompactionPolicyKind.TIERED);
                case "recovery" -> {
                    for (int i = 0; i < RECOVERIES; i++) {
                        costs.recovery();
                    }
                }
                default -> throw new IllegalArgumentException("no such part: --only " + part + ", one of " + PARTS);
            }
        }
    }

    private void amplification(CompactionPolicyKind policy) throws Exception {
        EngineBenchmark.remove(directory);
        long heapBefore = usedHeap();
        StoreOptions options = StoreOptions.at(directory).toBuilder()
                .wal(WalMode.OS)
                .compaction(policy)
                .build();
        try (OurStore store = new OurStore(options)) {
            int size = keys.size();
            Scramble scramble = new Scramble(size);
            for (int i = 0; i < size; i++) {
                int key = scramble.at(i);
                store.put(Keyspace.key(key), keys.value(key));
            }
            SplittableRandom random = new SplittableRandom(1);
            for (int i = 0; i < size / 2; i++) {
                int key = random.nextInt(size);
                store.put(Keyspace.key(key), keys.value(key));
            }
            store.settle();
            StoreMetrics written = store.metrics();
            for (int i = 0; i < READS; i++) {
                int key = random.nextInt(size);
                if (store.get(Keyspace.key(key)) == null) {
                    throw new AssertionError("wrong answer: key " + key + " is missing");
                }
            }
            StoreMetrics read = store.metrics();
            long heap = usedHeap() - heapBefore;
            long live = (long) size * (Keyspace.KEY_BYTES + Keyspace.VALUE_BYTES);
            long tables = written.flushBytes() + written.compactionBytesWritten();
            System.out.printf(
                    Locale.ROOT,
                    "%s: write amplification %.2f (with log %.2f), space amplification %.2f, per get %.2f "
                            + "filter checks and"
                            + " %.2f block reads, heap %.2f bytes per entry (%,d KB), off-heap %,d KB, mapped %,d MB%n",
                    policy.name().toLowerCase(Locale.ROOT),
                    (double) tables / written.userBytes(),
                    (double) (tables + written.walBytes()) / written.userBytes(),
                    (double) tableBytes() / live,
                    (double) (read.bloomChecks() - written.bloomChecks()) / READS,
                    (double) (read.blockReads() - written.blockReads()) / READS,
                    (double) heap / size,
                    heap >> 10,
                    read.offHeapBytes() >> 10,
                    read.mappedBytes() >> 20);
            paced(store, random);
        }
        EngineBenchmark.remove(directory);
    }

    /// What a writer waits for beside flush and compaction: a put's time runs from when it was due.
    private void paced(OurStore store, SplittableRandom random) throws InterruptedException {
        StoreMetrics before = store.metrics();
        int puts = PACED_PER_S * PACED_S;
        long begun = System.nanoTime();
        long longest = 0;
        int overMillisecond = 0;
        for (int i = 0; i < puts; i++) {
            long due = begun + i * 1_000_000_000L / PACED_PER_S;
            while (System.nanoTime() < due) {
                Thread.onSpinWait();
            }
            int key = random.nextInt(keys.size());
            store.put(Keyspace.key(key), keys.value(key));
            long took = System.nanoTime() - due;
            longest = Math.max(longest, took);
            overMillisecond += took > 1_000_000 ? 1 : 0;
        }
        StoreMetrics after = store.metrics();
        long stalled = stalls(after) - stalls(before);
        System.out.printf(
                Locale.ROOT,
                "  then %,d puts a second for %d s: %,d stalls, the longest put %.1f ms after it was due, %.4f %% over "
                        + "1 ms; beside %,d flushes and %,d compactions, which wrote %,d MB%n",
                PACED_PER_S,
                PACED_S,
                stalled,
                longest / 1e6,
                100.0 * overMillisecond / puts,
                after.flushes() - before.flushes(),
                after.compactions() - before.compactions(),
                (after.compactionBytesWritten() - before.compactionBytesWritten()) / 1_000_000);
    }

    private static long stalls(StoreMetrics metrics) {
        return metrics.stalls().values().stream()
                .mapToLong(StoreMetrics.Stalls::count)
                .sum();
    }

    private long tableBytes() throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> file.toString().endsWith(".table"))
                    .mapToLong(file -> file.toFile().length())
                    .sum();
        }
    }

    private static long usedHeap() {
        for (int i = 0; i < 3; i++) {
            System.gc();
        }
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    private void recovery() throws Exception {
        EngineBenchmark.remove(directory);
        Process filler = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx" + Runtime.getRuntime().maxMemory(),
                        "--enable-native-access=ALL-UNNAMED",
                        "--sun-misc-unsafe-memory-access=allow",
                        "-cp",
                        System.getProperty("java.class.path"),
                        LogFiller.class.getName(),
                        directory.toString(),
                        Long.toString(LOG_BYTES))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        String[] left =
                new String(filler.getInputStream().readAllBytes()).strip().split(" ");
        if (filler.waitFor() != 0 || !left[2].equals("0")) {
            throw new AssertionError("the logs were not filled, or flushed: " + String.join(" ", left));
        }
        long records = Long.parseLong(left[0]);
        StoreOptions options =
                StoreOptions.at(directory).toBuilder().wal(WalMode.OS).build();
        try (Store store = LsmStore.open(options)) {
            StoreMetrics.Recovery recovery = store.metrics().recovery();
            if (recovery.records() != records) {
                throw new AssertionError("records lost: written=" + records + ", recovered=" + recovery.records());
            }
            System.out.printf(
                    Locale.ROOT,
                    "recovery: %,d records, %,d MB of log left by a crash, in %.2f s%n",
                    records,
                    Long.parseLong(left[1]) / 1_000_000,
                    recovery.time().toNanos() / 1e9);
        }
        EngineBenchmark.remove(directory);
    }
}
