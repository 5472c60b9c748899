package kv.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The real service is killed with SIGKILL under load, while it opens its store and while it closes it, or is
/// stopped in order, as chance will have it, again and again on one directory, with other options each time.
/// After each restart every key must hold what was acknowledged last, or what was on its way when the service
/// died.
///
/// `-Dkv.kill.rounds=N` for more rounds, `-Dkv.kill.seed=S` to repeat one.
class KillTest {
    private static final int ROUNDS = Integer.getInteger("kv.kill.rounds", 6);
    private static final int WRITERS = 6;
    /// Of a thousand rounds, at least so many are to be killed in an opening or a closing.
    private static final double IN_OPENINGS_AND_CLOSINGS = 0.3;
    private static final String OPENING = "opening the store:";
    private static final String OPENED = "store opened:";
    private static final String CLOSING = "closing the store";
    private static final String CLOSED = "stopped";

    /// What happens to the service in a round.
    private enum Kind {
        KILLED_IN_ITS_OPENING,
        KILLED_UNDER_LOAD,
        KILLED_IN_ITS_CLOSING,
        STOPPED_UNDER_LOAD,
        KILLED_WITHOUT_A_WRITE,
        KILLED_IN_ITS_CLOSING_WITHOUT_A_WRITE,
        STOPPED_WITHOUT_A_WRITE;

        /// One opening in three is killed; of the others one in four has nothing to write.
        static Kind draw(Random random) {
            if (random.nextInt(100) < 35) {
                return KILLED_IN_ITS_OPENING;
            }
            boolean writes = random.nextInt(4) > 0;
            return switch (random.nextInt(5)) {
                case 0 -> writes ? STOPPED_UNDER_LOAD : STOPPED_WITHOUT_A_WRITE;
                case 1, 2 -> writes ? KILLED_UNDER_LOAD : KILLED_WITHOUT_A_WRITE;
                default -> writes ? KILLED_IN_ITS_CLOSING : KILLED_IN_ITS_CLOSING_WITHOUT_A_WRITE;
            };
        }
    }

    @TempDir
    private Path directory;

    private final long seed = Long.getLong("kv.kill.seed", System.nanoTime());
    private final Random random = new Random(seed);
    private final List<KilledWriter> writers = new ArrayList<>();
    /// A kill comes by chance within a little more than these, which follow how long an opening and a closing
    /// take.
    private long openingNanos = 50_000_000;
    private long closingNanos = 20_000_000;
    private final Map<Kind, Integer> rounds = new EnumMap<>(Kind.class);
    private int killedInOpenings;
    private int killedInClosings;
    private int killedElsewhere;
    private KilledOperator operator;

    @Test
    void everyAcknowledgedWriteSurvivesSigkill() throws Exception {
        System.out.println("rounds of kills: " + ROUNDS + ", -Dkv.kill.seed=" + seed);
        operator = new KilledOperator(Files.createDirectory(directory.resolve("checkpoints")), new Random(seed - 1));
        for (int w = 0; w < WRITERS; w++) {
            writers.add(new KilledWriter("writer" + w + "-", new Random(seed + w)));
        }
        for (int round = 1; round <= ROUNDS; round++) {
            List<String> options = options(random);
            Kind kind = round == 1 ? Kind.KILLED_UNDER_LOAD : Kind.draw(random); // so that there is something to lose
            rounds.merge(kind, 1, Integer::sum);
            String where = "seed " + seed + ", round " + round + ", " + kind + ", " + options;
            try (ServiceProcess service = ServiceProcess.start(options)) {
                play(kind, service, where);
            } catch (IOException | AssertionError e) {
                throw new AssertionError(where + ": " + e.getMessage(), e);
            }
            operator.checkLastCheckpoint(where);
        }
        try (ServiceProcess service = ServiceProcess.start(options(random))) {
            int port = service.awaitReady();
            check(port, "seed " + seed + ", after the last round");
            service.signal("TERM");
            assertThat(service.awaitExit()).isZero();
        }
        System.out.printf(
                "rounds of kills: %s; hit in an opening %d, in a closing %d, just before or after one %d; "
                        + "%d acknowledged writes checked, %d requests of an operator, seed %d%n",
                rounds,
                killedInOpenings,
                killedInClosings,
                killedElsewhere,
                acknowledged(writers),
                operator.done(),
                seed);
        assertThat((double) killedInOpenings + killedInClosings)
                .as("kills in openings and closings of %d rounds", ROUNDS)
                .isGreaterThanOrEqualTo(killsWanted(ROUNDS));
    }

    /// Some of a few rounds are left to chance: about half of all hit.
    private static double killsWanted(int rounds) {
        return IN_OPENINGS_AND_CLOSINGS * rounds - (rounds < 1_000 ? 1.5 * Math.sqrt(rounds) : 0);
    }

    private void play(Kind kind, ServiceProcess service, String where) throws Exception {
        switch (kind) {
            case KILLED_IN_ITS_OPENING -> killInOpening(service);
            case KILLED_UNDER_LOAD -> killUnderLoad(service, where);
            case KILLED_IN_ITS_CLOSING -> {
                int port = service.awaitReady();
                check(port, where);
                writeUntil(service, port, random.nextInt(200), () -> killInClosing(service));
            }
            case STOPPED_UNDER_LOAD -> {
                int port = service.awaitReady();
                check(port, where);
                writeUntil(service, port, random.nextInt(500), () -> stop(service));
            }
            case KILLED_WITHOUT_A_WRITE -> {
                check(service.awaitReady(), where);
                service.kill();
            }
            case KILLED_IN_ITS_CLOSING_WITHOUT_A_WRITE -> {
                check(service.awaitReady(), where);
                killInClosing(service);
            }
            case STOPPED_WITHOUT_A_WRITE -> {
                check(service.awaitReady(), where);
                stop(service);
            }
        }
    }

    private static void stop(ServiceProcess service) throws IOException {
        service.signal("TERM");
        assertThat(service.awaitExit())
                .as("exit code of an orderly stop\n" + service.err())
                .isZero();
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
            openingNanos = shorter(openingNanos);
        } else {
            killedInOpenings++;
            openingNanos = longer(openingNanos);
        }
    }

    private void killInClosing(ServiceProcess service) throws IOException, InterruptedException {
        service.signal("TERM");
        service.awaitLogged(CLOSING);
        sleep((long) (random.nextDouble() * 1.2 * closingNanos));
        service.kill();
        if (service.hasLogged(CLOSED)) {
            killedElsewhere++;
            closingNanos = shorter(closingNanos);
        } else {
            killedInClosings++;
            closingNanos = longer(closingNanos);
        }
    }

    /// So that about three kills in four hit, and some fall into the end of what they are to hit.
    private static long longer(long nanos) {
        return nanos * 21 / 20;
    }

    private static long shorter(long nanos) {
        return Math.max(1_000_000, nanos * 17 / 20);
    }

    private void killUnderLoad(ServiceProcess service, String where) throws Exception {
        int port = service.awaitReady();
        check(port, where);
        writeUntil(service, port, random.nextInt(1_000), service::kill);
    }

    private static void sleep(long nanos) throws InterruptedException {
        Thread.sleep(nanos / 1_000_000, (int) (nanos % 1_000_000));
    }

    @Test
    void theCheckFindsWhatAStoreWithoutALogLoses() throws Exception {
        List<String> options = List.of("--dir", directory.resolve("store").toString(), "--port", "0", "--wal", "none");
        KilledWriter writer = new KilledWriter("writer-", new Random(1));
        try (ServiceProcess service = ServiceProcess.start(options)) {
            writeUntil(service, service.awaitReady(), List.of(writer), List.of(), 500, service::kill);
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

    /// What one client does until the service is gone.
    private interface Client {
        void run() throws Exception;
    }

    /// Every other time with an operator's requests beside the writes.
    private void writeUntil(ServiceProcess service, int port, int millis, End end) throws Exception {
        List<Client> others = random.nextBoolean() ? List.of(() -> operator.askUntilDisconnected(port)) : List.of();
        writeUntil(service, port, writers, others, millis, end);
    }

    /// @param millis from the first acknowledged write on
    private static void writeUntil(
            ServiceProcess service, int port, List<KilledWriter> writers, List<Client> others, int millis, End end)
            throws Exception {
        List<Throwable> faults = new CopyOnWriteArrayList<>();
        List<Thread> threads = new ArrayList<>();
        List<Client> clients = new ArrayList<>(others);
        writers.forEach(writer -> clients.add(() -> writer.writeUntilDisconnected(port)));
        for (Client client : clients) {
            threads.add(Thread.startVirtualThread(() -> {
                try {
                    client.run();
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
                "--dir",
                directory.resolve("store").toString(),
                "--port",
                "0",
                "--admin",
                "--wal",
                pick(random, "os", "interval", "always"),
                "--wal-interval-ms",
                pick(random, "1", "50", "1000"),
                "--handler",
                pick(random, "selector", "workers", "virtual"),
                "--memtable-bytes",
                pick(random, "16k", "256k", "1m", "64m"),
                "--table-bytes",
                pick(random, "16k", "256k", "64m"),
                "--frozen-memtables",
                pick(random, "1", "2", "4"),
                "--block-bytes",
                pick(random, "256", "4k", "16k"),
                "--bloom-bits",
                pick(random, "0", "10"),
                "--compaction",
                pick(random, "leveled", "tiered", "none"),
                "--read",
                pick(random, "mmap", "pread"),
                "--table-memory",
                pick(random, "0", "1", "1m"),
                "--compression",
                pick(random, "none", "lz4"),
                "--cache-entries",
                pick(random, "0", "50"),
                "--stall-limit-ms",
                "0");
    }

    private static String pick(Random random, String... choices) {
        return choices[random.nextInt(choices.length)];
    }
}
