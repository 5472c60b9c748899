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

/// The real service is killed with SIGKILL under load, while it opens its store and while it closes it, again
/// and again on one directory, with other options each time. After each restart every key must hold what was
/// acknowledged last, or what was on its way when the service died.
///
/// `-Dkv.kill.rounds=N` for more rounds, `-Dkv.kill.seed=S` to repeat one.
class KillTest {
    private static final int ROUNDS = Integer.getInteger("kv.kill.rounds", 6);
    private static final int WRITERS = 6;
    private static final String OPENING = "opening the store:";
    private static final String OPENED = "store opened:";
    private static final String CLOSING = "closing the store";
    private static final String CLOSED = "stopped";

    @TempDir
    private Path directory;

    private final long seed = Long.getLong("kv.kill.seed", System.nanoTime());
    private final Random random = new Random(seed);
    private final List<KilledWriter> writers = new ArrayList<>();
    /// A kill comes by chance within a little more than these, which follow how long an opening and a closing
    /// take.
    private long openingNanos = 50_000_000;
    private long closingNanos = 20_000_000;
    private int killedUnderLoad;
    private int killedInOpenings;
    private int killedInClosings;
    private int killedElsewhere;

    @Test
    void everyAcknowledgedWriteSurvivesSigkill() throws Exception {
        for (int w = 0; w < WRITERS; w++) {
            writers.add(new KilledWriter("writer" + w + "-", new Random(seed + w)));
        }
        for (int round = 1; round <= ROUNDS; round++) {
            List<String> options = options(random);
            String where = "seed " + seed + ", round " + round + ", " + options;
            try (ServiceProcess service = ServiceProcess.start(options)) {
                switch (round % 3) {
                    case 0 -> killInOpening(service);
                    case 1 -> killInClosing(service, where);
                    default -> {
                        killUnderLoad(service, where);
                        killedUnderLoad++;
                    }
                }
            } catch (IOException | AssertionError e) {
                throw new AssertionError(where + ": " + e.getMessage(), e);
            }
        }
        try (ServiceProcess service = ServiceProcess.start(options(random))) {
            int port = service.awaitReady();
            check(port, "seed " + seed + ", after the last round");
            service.signal("TERM");
            assertThat(service.awaitExit()).isZero();
        }
        System.out.printf(
                "killed %d times: under load %d, in an opening %d, in a closing %d, just before or after one %d; "
                        + "%d acknowledged writes checked, seed %d%n",
                ROUNDS,
                killedUnderLoad,
                killedInOpenings,
                killedInClosings,
                killedElsewhere,
                acknowledged(writers),
                seed);
    }

    private void check(int port, String where) throws IOException {
        for (KilledWriter writer : writers) {
            writer.check(port, where);
        }
    }

    private void killInOpening(ServiceProcess service) throws InterruptedException {
        service.awaitLogged(OPENING);
        sleep((long) (random.nextDouble() * 1.2 * openingNanos));
        service.kill();
        if (service.hasLogged(OPENED)) {
            killedElsewhere++;
            openingNanos = Math.max(1_000_000, openingNanos * 9 / 10);
        } else {
            killedInOpenings++;
            openingNanos = openingNanos * 11 / 10;
        }
    }

    private void killInClosing(ServiceProcess service, String where) throws Exception {
        int port = service.awaitReady();
        check(port, where);
        writeUntil(service, port, writers, random.nextInt(200), () -> {
            service.signal("TERM");
            service.awaitLogged(CLOSING);
            sleep((long) (random.nextDouble() * 1.2 * closingNanos));
            service.kill();
        });
        if (service.hasLogged(CLOSED)) {
            killedElsewhere++;
            closingNanos = Math.max(1_000_000, closingNanos * 9 / 10);
        } else {
            killedInClosings++;
            closingNanos = closingNanos * 11 / 10;
        }
    }

    private void killUnderLoad(ServiceProcess service, String where) throws Exception {
        int port = service.awaitReady();
        check(port, where);
        writeUntilKilled(service, port, writers, random.nextInt(1_000));
    }

    private static void sleep(long nanos) throws InterruptedException {
        Thread.sleep(nanos / 1_000_000, (int) (nanos % 1_000_000));
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

    private interface End {
        void come() throws Exception;
    }

    private static void writeUntilKilled(ServiceProcess service, int port, List<KilledWriter> writers, int millis)
            throws Exception {
        writeUntil(service, port, writers, millis, service::kill);
    }

    /// @param millis from the first acknowledged write on
    private static void writeUntil(ServiceProcess service, int port, List<KilledWriter> writers, int millis, End end)
            throws Exception {
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
        end.come();
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(faults).isEmpty();
        assertThat(acknowledged(writers)).as("the load must write").isGreaterThan(before);
        assertThat(alive)
                .as("the service died before it was killed:\n" + service.err())
                .isTrue();
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
                "--table-memory", pick(random, "0", "1", "1m"),
                "--compression", pick(random, "none", "lz4"),
                "--cache-entries", pick(random, "0", "50"),
                "--stall-limit-ms", "0");
    }

    private static String pick(Random random, String... choices) {
        return choices[random.nextInt(choices.length)];
    }
}
