package kv.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The real service is killed with SIGKILL under load, again and again on one directory, with other options each time.
/// After each restart every key must hold what was acknowledged last, or what was on its way when the service died.
///
/// `-Dkv.kill.rounds=N` for more rounds, `-Dkv.kill.seed=S` to repeat one.
class KillTest {
    private static final int ROUNDS = Integer.getInteger("kv.kill.rounds", 4);
    private static final int WRITERS = 6;

    @TempDir
    private Path directory;

    @Test
    void everyAcknowledgedWriteSurvivesSigkill() throws Exception {
        long seed = Long.getLong("kv.kill.seed", System.nanoTime());
        Random random = new Random(seed);
        List<KilledWriter> writers = new ArrayList<>();
        for (int w = 0; w < WRITERS; w++) {
            writers.add(new KilledWriter("writer" + w + "-", new Random(seed + w)));
        }
        for (int round = 1; round <= ROUNDS; round++) {
            List<String> options = options(random);
            String where = "seed " + seed + ", round " + round + ", " + options;
            try (ServiceProcess service = ServiceProcess.start(options)) {
                if (random.nextInt(5) == 0) {
                    Thread.sleep(random.nextInt(600)); // in the middle of its start and recovery
                    service.kill();
                    continue;
                }
                int port = service.awaitReady();
                for (KilledWriter writer : writers) {
                    writer.check(port, where);
                }
                writeUntilKilled(service, port, writers, random.nextInt(1_000));
            } catch (IOException | AssertionError e) {
                throw new AssertionError(where + ": " + e.getMessage(), e);
            }
        }
        long acknowledged = acknowledged(writers);
        try (ServiceProcess service = ServiceProcess.start(options(random))) {
            int port = service.awaitReady();
            for (KilledWriter writer : writers) {
                writer.check(port, "seed " + seed + ", after the last round");
            }
            service.signal("TERM");
            assertThat(service.awaitExit()).isZero();
        }
        System.out.printf("killed %d times, %d acknowledged writes checked, seed %d%n", ROUNDS, acknowledged, seed);
    }

    @Test
    void theCheckFindsWhatAStoreWithoutALogLoses() throws Exception {
        List<String> options = List.of("--dir", directory.toString(), "--port", "0", "--wal", "none");
        KilledWriter writer = new KilledWriter("writer-", new Random(1));
        try (ServiceProcess service = ServiceProcess.start(options)) {
            writeUntilKilled(service, service.awaitReady(), List.of(writer), 500);
        }
        assertThat(writer.acknowledged()).isPositive();
        try (ServiceProcess service = ServiceProcess.start(options)) {
            int port = service.awaitReady();
            assertThatThrownBy(() -> writer.check(port, "planted")).isInstanceOf(AssertionError.class);
        }
    }

    private static void writeUntilKilled(ServiceProcess service, int port, List<KilledWriter> writers, int millis)
            throws InterruptedException {
        List<Throwable> faults = new CopyOnWriteArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (KilledWriter writer : writers) {
            threads.add(Thread.startVirtualThread(() -> {
                try {
                    writer.writeUntilDisconnected(port);
                } catch (Throwable e) {
                    faults.add(e);
                }
            }));
        }
        long before = acknowledged(writers);
        long deadline = System.nanoTime() + 30_000_000_000L;
        while (acknowledged(writers) == before && service.isAlive() && System.nanoTime() < deadline) {
            Thread.sleep(1);
        }
        Thread.sleep(millis);
        boolean alive = service.isAlive();
        service.kill();
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(faults).isEmpty();
        assertThat(acknowledged(writers)).as("the load must write").isGreaterThan(before);
        assertThat(alive).as("the service died before it was killed:\n" + service.err()).isTrue();
    }

    private static long acknowledged(List<KilledWriter> writers) {
        return writers.stream().mapToLong(KilledWriter::acknowledged).sum();
    }

    private List<String> options(Random random) {
        return List.of(
                "--dir", directory.toString(),
                "--port", "0",
                "--wal", pick(random, "os", "interval", "always"),
                "--wal-interval-ms", pick(random, "1", "50", "1000"),
                "--handler", pick(random, "selector", "workers", "virtual"),
                "--memtable-bytes", pick(random, "16k", "256k", "1m", "64m"),
                "--block-bytes", pick(random, "256", "4k", "16k"),
                "--bloom-bits", pick(random, "0", "10"),
                "--compaction", pick(random, "leveled", "tiered", "none"),
                "--read", pick(random, "mmap", "pread"),
                "--compression", pick(random, "none", "lz4"),
                "--cache-entries", pick(random, "0", "50"),
                "--stall-limit-ms", "0");
    }

    private static String pick(Random random, String... choices) {
        return choices[random.nextInt(choices.length)];
    }
}
