package kv.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import kv.Eventually;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// The real process with a heap of 128 MB and clients that take all they can at once: ranges over 1 MiB values
/// that nobody reads, connections that say nothing, 60 kB values through the cache, a writer at full speed. It
/// lives, keeps all of them, stays within the memory that its README names, and a client that behaves is served.
///
/// `make hostile-service` runs it in full and holds the p99 of GET to its limit; the short form looks at life,
/// memory and answers only, since other tests may have the processors.
class HostileClientsTest {
    private static final boolean FULL = Boolean.getBoolean("kv.hostile.full");
    private static final int UNREAD_RANGES = FULL ? 200 : 60;
    private static final int IDLE_CONNECTIONS = FULL ? 10_000 : 500;
    private static final int SECONDS = FULL ? 30 : 4;
    private static final int LOOKS_MIN = SECONDS / 2 + 1;
    private static final int LARGE_VALUES = 64;
    private static final int LARGE_BYTES = 1 << 20;
    private static final int CACHED_VALUES = 2_000;
    private static final int CACHED_BYTES = 60_000;
    /// A value counts when it is added, a moment before another is evicted for it.
    private static final int BEING_ADDED = 4;

    /// More than a client asks for: who reads one for the first time does not find it in the cache.
    private static final int SMALL_VALUES = 100_000;

    private static final int SMALL_VALUES_AT_ONCE = 10_000;
    private static final int HOT_VALUES = 10;
    private static final long GET_P99_NANOS_MAX = 20_000_000;
    private static final long GET_NANOS_MAX = 10_000_000_000L;
    private static final int MIB = 1 << 20;
    private static final int HEAP_MIB = 128;
    private static final int CACHE_MIB = 32;
    private static final int MEMTABLE_MIB = 4;
    private static final String NOISE = noise();

    /// What `README.md` says under "Memory", row by row, of this test's options; MiB of anonymous memory.
    private static final Map<String, Integer> MIB_MAX = Map.of(
            "heap", HEAP_MIB,
            "three memtables", 3 * MEMTABLE_MIB,
            "unread ranges", 48,
            "spare buffers of reads", 16,
            "of 16 runs that are merged, a block of 1 MiB as it is stored, and one as it is", 16 * 2,
            "an eightieth of 1 GiB of tables, and filters of 3 million keys", 17,
            "the JVM", 128);

    /// One start of the service.
    private record Case(String handler, String read, String compression) {}

    /// Mapped tables alone in the short form.
    static Stream<Case> cases() {
        Stream<Case> always = Stream.of(new Case("selector", "mmap", "none"), new Case("virtual", "mmap", "none"));
        Stream<Case> ifFull = Stream.of(
                new Case("workers", "mmap", "none"),
                new Case("selector", "pread", "lz4"),
                new Case("workers", "pread", "lz4"));
        return FULL ? Stream.concat(always, ifFull) : always;
    }

    /// What one look at the service found.
    private record Sample(Map<String, Double> metrics, long anonymousKib) {
        long of(String name) {
            return metrics.entrySet().stream()
                    .filter(metric ->
                            metric.getKey().equals(name) || metric.getKey().startsWith(name + "{"))
                    .mapToLong(metric -> metric.getValue().longValue())
                    .sum();
        }
    }

    /// GETs of the client that behaves.
    private final List<Long> tookNanos = new ArrayList<>();

    private final AtomicLong written = new AtomicLong();
    private final AtomicLong cached = new AtomicLong();
    private final CountDownLatch stop = new CountDownLatch(1);
    private final CountDownLatch looksToCome = new CountDownLatch(LOOKS_MIN);

    @ParameterizedTest
    @MethodSource("cases")
    void itLivesKeepsAllOfThemAndServesThoseWhoBehave(Case start, @TempDir Path directory) throws Exception {
        List<String> options = List.of(
                "--dir=" + directory,
                "--port=0",
                "--handler=" + start.handler,
                "--read=" + start.read,
                "--compression=" + start.compression,
                "--cache-entries=10000",
                "--cache-bytes=" + CACHE_MIB + "m",
                "--memtable-bytes=" + MEMTABLE_MIB + "m",
                "--max-connections=11000",
                "--idle-timeout-ms=600000",
                "--answer-timeout-ms=600000");
        List<Socket> greedy = new ArrayList<>();
        try (ServiceProcess service = ServiceProcess.start(List.of("-Xmx" + HEAP_MIB + "m"), "kv.Main", options);
                ExecutorService clients = Executors.newCachedThreadPool()) {
            int port = service.awaitReady();
            fill(port);
            connectAllWhoTake(port, greedy);
            List<Future<?>> busy = List.of(
                    clients.submit(() -> repeat(port, written, HostileClientsTest::putNext)),
                    clients.submit(() -> repeat(port, cached, HostileClientsTest::getNextCached)));
            Future<List<Sample>> samples = clients.submit(() -> samples(port, service.pid()));
            try {
                behave(port);
            } finally {
                stop.countDown();
            }
            for (Future<?> client : busy) {
                client.get();
            }
            assertThat(service.isAlive()).as(service.err()).isTrue();
            check(samples.get());
        } finally {
            stop.countDown();
            for (Socket socket : greedy) {
                socket.close();
            }
        }
    }

    private void fill(int port) throws Exception {
        try (HttpConnection setUp = new HttpConnection(port)) {
            for (int i = 0; i < LARGE_VALUES; i++) {
                String key = "large" + i;
                untilTaken(() -> setUp.put(key, value(key, LARGE_BYTES)), 201);
            }
            for (int i = 0; i < CACHED_VALUES; i++) {
                String key = "cached" + i;
                untilTaken(() -> setUp.put(key, value(key, CACHED_BYTES)), 201);
            }
            for (int first = 0; first < SMALL_VALUES; first += SMALL_VALUES_AT_ONCE) {
                Map<String, String> batch = new TreeMap<>();
                for (int i = first; i < first + SMALL_VALUES_AT_ONCE; i++) {
                    batch.put("small" + i, value("small" + i, 100));
                }
                untilTaken(() -> setUp.batch(batch), 200);
            }
        }
    }

    /// Returns when the service knows all of them.
    private static void connectAllWhoTake(int port, List<Socket> greedy) throws Exception {
        for (int i = 0; i < UNREAD_RANGES; i++) {
            greedy.add(connect(port));
            greedy.getLast()
                    .getOutputStream()
                    .write("GET /v0/entities?start=large HTTP/1.1\r\nHost: x\r\n\r\n".getBytes());
        }
        for (int i = 0; i < IDLE_CONNECTIONS; i++) {
            greedy.add(connect(port));
        }
        try (HttpConnection watcher = new HttpConnection(port)) {
            Eventually.holds(() -> {
                try {
                    Sample now = new Sample(watcher.metrics("kv_"), 0);
                    return now.of("kv_store_open_cursors") == UNREAD_RANGES
                            && now.of("kv_http_connections") > UNREAD_RANGES + IDLE_CONNECTIONS;
                } catch (IOException e) {
                    throw new AssertionError(e);
                }
            });
        }
    }

    private List<Sample> samples(int port, long pid) throws Exception {
        List<Sample> samples = new ArrayList<>();
        try (HttpConnection watcher = new HttpConnection(port)) {
            do {
                samples.add(new Sample(watcher.metrics("kv_"), anonymousKib(pid)));
                looksToCome.countDown();
            } while (!stop.await(1, TimeUnit.SECONDS));
        }
        return samples;
    }

    private void check(List<Sample> samples) {
        long[] took = tookNanos.stream().mapToLong(Long::longValue).sorted().toArray();
        long p99 = took[took.length * 99 / 100];
        long anonymous = samples.stream().mapToLong(Sample::anonymousKib).max().orElseThrow();
        long offHeap = samples.stream()
                .mapToLong(sample -> sample.of("kv_store_off_heap_bytes"))
                .max()
                .orElseThrow();
        System.out.printf(
                "GETs %d, p50 %d us, p99 %d us, max %d us; PUTs %d, cached GETs %d; %d looks, most anonymous memory"
                        + " %d MiB, of it the store's %d MiB%n",
                took.length,
                took[took.length / 2] / 1_000,
                p99 / 1_000,
                took[took.length - 1] / 1_000,
                written.get(),
                cached.get(),
                samples.size(),
                anonymous >> 10,
                offHeap >> 20);
        assertThat(samples).hasSizeGreaterThanOrEqualTo(LOOKS_MIN);
        for (Sample sample : samples) {
            assertThat(sample.of("kv_http_connections"))
                    .as("open connections")
                    .isGreaterThanOrEqualTo(UNREAD_RANGES + IDLE_CONNECTIONS);
            assertThat(sample.of("kv_http_connections_refused_total"))
                    .as("refused")
                    .isZero();
            assertThat(sample.of("kv_http_connections_cut_total")).as("cut").isZero();
            assertThat(sample.of("kv_store_open_cursors")).as("ranges").isEqualTo(UNREAD_RANGES);
            assertThat(sample.of("kv_http_memory_bytes"))
                    .as("heap of requests and answers")
                    .isBetween(1L, sample.of("kv_http_memory_limit_bytes"));
            assertThat(sample.of("kv_http_memory_limit_bytes")).isLessThanOrEqualTo(HEAP_MIB / 4 * MIB);
            assertThat(sample.of("kv_cache_bytes"))
                    .as("heap of the cache")
                    .isLessThanOrEqualTo(CACHE_MIB * MIB + BEING_ADDED * CACHED_BYTES);
        }
        Sample first = samples.getFirst();
        Sample last = samples.getLast();
        assertThat(last.of("kv_cache_bytes")).as("heap of the cache at the end").isPositive();
        assertThat(last.of("kv_cache_hits_total")).isGreaterThan(first.of("kv_cache_hits_total"));
        assertThat(last.of("kv_cache_misses_total")).isGreaterThan(first.of("kv_cache_misses_total"));
        assertThat(written.get()).as("PUTs").isGreaterThan(100);
        assertThat(cached.get()).as("GETs through the cache").isGreaterThan(100);
        assertThat(took[took.length - 1]).as("slowest GET").isLessThan(GET_NANOS_MAX);
        int mibMax = MIB_MAX.values().stream().mapToInt(Integer::intValue).sum();
        assertThat(offHeap >> 20)
                .as("native memory of the store, MiB")
                .isLessThanOrEqualTo(mibMax - MIB_MAX.get("heap") - MIB_MAX.get("the JVM"));
        assertThat(anonymous >> 10).as("most anonymous memory, MiB").isLessThanOrEqualTo(mibMax);
        if (FULL) {
            assertThat(p99).as("p99 of GET, ns").isLessThan(GET_P99_NANOS_MAX);
        }
    }

    private interface Call {
        int run(HttpConnection connection, long number) throws IOException;
    }

    private static int putNext(HttpConnection connection, long number) throws IOException {
        String key = "written" + number % 100_000;
        return connection.put(key, value(key, 1_000));
    }

    /// Most of them have left the cache when they are asked for again.
    private static int getNextCached(HttpConnection connection, long number) throws IOException {
        String key = "cached" + number * 7 % CACHED_VALUES;
        HttpConnection.Reply reply = connection.get(key);
        assertThat(reply.status() == 503 || reply.body().equals(value(key, CACHED_BYTES)))
                .as(key)
                .isTrue();
        return reply.status();
    }

    /// A client that behaves: an [IOException] is the connection that was cut.
    private Void repeat(int port, AtomicLong done, Call call) throws Exception {
        try (HttpConnection connection = new HttpConnection(port)) {
            while (stop.getCount() > 0) {
                assertThat(call.run(connection, done.get())).isIn(200, 201, 503);
                done.incrementAndGet();
            }
        }
        return null;
    }

    /// Every other GET is of a value that nobody has asked for before, the rest of a few that are in the cache.
    /// On a busy machine a look may take long, and this goes on for as long.
    private void behave(int port) throws Exception {
        long end = System.nanoTime() + SECONDS * 1_000_000_000L;
        long patience = end + 60_000_000_000L;
        try (HttpConnection connection = new HttpConnection(port)) {
            for (int number = 0; System.nanoTime() < (looksToCome.getCount() > 0 ? patience : end); number++) {
                String key = "small" + (number % 2 == 0 ? number / 2 % HOT_VALUES : number % SMALL_VALUES);
                long start = System.nanoTime();
                HttpConnection.Reply reply = connection.get(key);
                tookNanos.add(System.nanoTime() - start);
                assertThat(reply.status()).isEqualTo(200);
                assertThat(reply.body()).isEqualTo(value(key, 100));
                Thread.sleep(1);
            }
        }
    }

    private interface Write {
        int run() throws IOException;
    }

    private static void untilTaken(Write write, int expected) throws Exception {
        int status = write.run();
        for (int tries = 0; status == 503 && tries < 100; tries++) {
            Thread.sleep(100);
            status = write.run();
        }
        assertThat(status).isEqualTo(expected);
    }

    /// Half of it cannot be compressed, so that a block is large before and after that.
    private static String value(String key, int bytes) {
        int half = (bytes - key.length()) / 2;
        return key + NOISE.substring(0, half) + "v".repeat(bytes - key.length() - half);
    }

    private static String noise() {
        byte[] bytes = new byte[LARGE_BYTES / 2];
        new SplittableRandom(1).nextBytes(bytes);
        return new String(bytes, StandardCharsets.ISO_8859_1);
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
