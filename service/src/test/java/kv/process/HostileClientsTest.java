package kv.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The real process with a heap of 128 MB and clients that take all they can at once: ranges over 1 MiB values
/// that nobody reads, connections that say nothing, 60 kB values through the cache, a writer at full speed. It
/// lives, and a client that behaves is served.
///
/// `make hostile-service` runs it in full and holds the p99 of GET to its limit; the short form looks at life,
/// memory and answers only, since other tests may have the processors.
class HostileClientsTest {
    private static final boolean FULL = Boolean.getBoolean("kv.hostile.full");
    private static final int UNREAD_RANGES = FULL ? 200 : 60;
    private static final int IDLE_CONNECTIONS = FULL ? 10_000 : 500;
    private static final int SECONDS = FULL ? 30 : 4;
    private static final int LARGE_VALUES = 64;
    private static final int CACHED_VALUES = 2_000;
    private static final int CACHED_BYTES = 60_000;
    private static final long GET_P99_NANOS_MAX = 20_000_000;
    private static final long GET_NANOS_MAX = 10_000_000_000L;
    /// Heap of 128 MB; memtables of 4 MB, three of them with index and filter; code, stacks and the JVM's own.
    private static final long ANONYMOUS_KIB_MAX = 420_000;

    @ParameterizedTest
    @ValueSource(strings = {"selector", "virtual"})
    void itLivesAndServesThoseWhoBehave(String handler, @TempDir Path directory) throws Exception {
        List<String> options = List.of(
                "--dir",
                directory.toString(),
                "--port",
                "0",
                "--handler",
                handler,
                "--cache-entries=10000",
                "--memtable-bytes=4m",
                "--max-connections=11000",
                "--answer-timeout-ms=600000");
        List<Socket> greedy = new ArrayList<>();
        AtomicBoolean stop = new AtomicBoolean();
        AtomicLong written = new AtomicLong();
        AtomicLong cached = new AtomicLong();
        try (ServiceProcess service = ServiceProcess.start(List.of("-Xmx128m"), "kv.Main", options)) {
            int port = service.awaitReady();
            try (HttpConnection setUp = new HttpConnection(port)) {
                for (int i = 0; i < LARGE_VALUES; i++) {
                    assertThat(putUntilTaken(setUp, "large" + i, "v".repeat(1 << 20)))
                            .isEqualTo(201);
                }
                for (int i = 0; i < CACHED_VALUES; i++) {
                    assertThat(putUntilTaken(setUp, "cached" + i, "v".repeat(CACHED_BYTES)))
                            .isEqualTo(201);
                }
                assertThat(putUntilTaken(setUp, "small", "v".repeat(100))).isEqualTo(201);
            }
            for (int i = 0; i < UNREAD_RANGES; i++) {
                greedy.add(connect(port));
                greedy.getLast()
                        .getOutputStream()
                        .write("GET /v0/entities?start=large HTTP/1.1\r\nHost: x\r\n\r\n".getBytes());
            }
            for (int i = 0; i < IDLE_CONNECTIONS; i++) {
                greedy.add(connect(port));
            }
            List<Thread> clients = List.of(
                    Thread.ofPlatform()
                            .start(() -> repeat(
                                    port,
                                    stop,
                                    written,
                                    (connection, i) -> connection.put("written" + i % 100_000, "v".repeat(1_000)))),
                    Thread.ofPlatform()
                            .start(() -> repeat(
                                    port,
                                    stop,
                                    cached,
                                    (connection, i) -> connection
                                            .get("cached" + i * 7 % CACHED_VALUES)
                                            .status())));
            long[] took = behave(port);
            stop.set(true);
            for (Thread client : clients) {
                client.join();
            }
            Arrays.sort(took);
            long p99 = took[took.length * 99 / 100];
            long anonymous = anonymousKib(service.pid());
            System.out.printf(
                    "GETs %d, p50 %d us, p99 %d us, max %d us; PUTs %d, cached GETs %d; anonymous memory %d KiB%n",
                    took.length,
                    took[took.length / 2] / 1_000,
                    p99 / 1_000,
                    took[took.length - 1] / 1_000,
                    written.get(),
                    cached.get(),
                    anonymous);
            assertThat(service.isAlive()).as(service.err()).isTrue();
            assertThat(written.get()).as("PUTs").isGreaterThan(100);
            assertThat(cached.get()).as("GETs through the cache").isGreaterThan(100);
            assertThat(took[took.length - 1]).as("slowest GET").isLessThan(GET_NANOS_MAX);
            assertThat(anonymous).as("anonymous memory, KiB").isLessThan(ANONYMOUS_KIB_MAX);
            if (FULL) {
                assertThat(p99).as("p99 of GET, ns").isLessThan(GET_P99_NANOS_MAX);
            }
        } finally {
            stop.set(true);
            for (Socket socket : greedy) {
                socket.close();
            }
        }
    }

    private interface Call {
        int run(HttpConnection connection, long number) throws IOException;
    }

    private static void repeat(int port, AtomicBoolean stop, AtomicLong done, Call call) {
        try (HttpConnection connection = new HttpConnection(port)) {
            while (!stop.get()) {
                int status = call.run(connection, done.get());
                assertThat(status).isIn(200, 201, 503);
                done.incrementAndGet();
            }
        } catch (IOException e) {
            throw new AssertionError("a client that behaves was cut off", e);
        }
    }

    private static long[] behave(int port) throws Exception {
        List<Long> took = new ArrayList<>();
        long end = System.nanoTime() + SECONDS * 1_000_000_000L;
        try (HttpConnection connection = new HttpConnection(port)) {
            while (System.nanoTime() < end) {
                long start = System.nanoTime();
                assertThat(connection.get("small").status()).isEqualTo(200);
                took.add(System.nanoTime() - start);
                Thread.sleep(1);
            }
        }
        return took.stream().mapToLong(Long::longValue).toArray();
    }

    private static int putUntilTaken(HttpConnection connection, String key, String value) throws Exception {
        int status = connection.put(key, value);
        for (int tries = 0; status == 503 && tries < 100; tries++) {
            Thread.sleep(100);
            status = connection.put(key, value);
        }
        return status;
    }

    private static Socket connect(int port) throws IOException {
        Socket socket = new Socket();
        socket.setReceiveBufferSize(4_096);
        socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 20_000);
        return socket;
    }

    private static long anonymousKib(long pid) throws IOException {
        return Files.readAllLines(Path.of("/proc/" + pid + "/status")).stream()
                .filter(line -> line.startsWith("RssAnon:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
                .findFirst()
                .orElseThrow();
    }
}
