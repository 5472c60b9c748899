package kv.http;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Semaphore;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import kv.Eventually;
import kv.http.HttpOptions.HandlerKind;
import kv.lsm.SlowDiskStore;
import kv.lsm.Store;
import kv.lsm.WalMode;
import kv.lsm.disk.ColdPages;
import kv.lsm.disk.MajorFaults;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Each cause is planted and lasts at least [#PLANTED_MILLIS]: the line of the request that met it must say so.
/// What is not planted has no upper bound here, because the machine may be busy, unless it cannot occur at all.
class SlowRequestLogTest {
    private static final int PLANTED_MILLIS = 150;
    private static final int COLD_PAGES = 20;
    private static final Pattern PART = Pattern.compile("(stall|sync|round|queue|disk|own)_ms=([0-9.]+)");

    @TempDir
    private Path directory;

    private final List<String> lines = new CopyOnWriteArrayList<>();

    /// Holds each GET of `gate` until it is let go.
    private static class GatedStore extends MemoryStore {
        final Semaphore atGate = new Semaphore(0);
        final Semaphore gate = new Semaphore(0);

        @Override
        public byte[] get(byte[] key) {
            if (new String(key).startsWith("gate")) {
                atGate.release();
                gate.acquireUninterruptibly();
            } else if (new String(key).startsWith("slow")) {
                sleep();
            }
            return super.get(key);
        }
    }

    /// Each GET of `cold` reads cold pages, and so does each prefetch of it; both are slow at that.
    private static final class FaultingStore extends GatedStore {
        private final ColdPages pages;

        FaultingStore(ColdPages pages) {
            this.pages = pages;
        }

        @Override
        public byte[] get(byte[] key) {
            read(key);
            return super.get(key);
        }

        @Override
        public void prefetchGets(byte[][] keys, int count) {
            for (int i = 0; i < count; i++) {
                read(keys[i]);
            }
        }

        /// Never parked: a virtual thread stays where its faults are counted.
        private void read(byte[] key) {
            if (new String(key).startsWith("cold")) {
                pages.read();
                for (long end = System.nanoTime() + PLANTED_MILLIS * 1_000_000L; System.nanoTime() < end; ) {
                    Thread.onSpinWait();
                }
            }
        }
    }

    /// Opened before the server is closed, so that a test that fails ends.
    private interface Gate extends AutoCloseable {
        @Override
        void close();
    }

    private static void sleep() {
        ConnectionTest.sleep(PLANTED_MILLIS);
    }

    private TestServer serverOf(Store store, HandlerKind handler) throws Exception {
        TestServer server = new TestServer(
                store,
                HttpOptions.onFreePort()
                        .withSelectors(1)
                        .withHandler(handler, 1, 100)
                        .withOperations(Operations.DEFAULTS.withSlowRequestMillis(PLANTED_MILLIS)));
        server.server.router().slowRequestsOrNull().lines = lines::add;
        return server;
    }

    private static double millis(String line, String part) {
        Matcher found = Pattern.compile(part + "_ms=([0-9.]+)").matcher(line);
        assertThat(found.find()).as("%s of %s", part, line).isTrue();
        return Double.parseDouble(found.group(1));
    }

    /// The only line of `target`, whose parts are its total.
    private String lineOf(String target) {
        Eventually.holds(() -> lines.stream().anyMatch(line -> line.contains(target + ",")));
        List<String> found =
                lines.stream().filter(line -> line.contains(target + ",")).toList();
        assertThat(found).hasSize(1);
        double sum = PART.matcher(found.getFirst())
                .results()
                .mapToDouble(part -> Double.parseDouble(part.group(2)))
                .sum();
        assertThat(sum).as(found.getFirst()).isCloseTo(millis(found.getFirst(), "total"), within(0.01));
        return found.getFirst();
    }

    private static void assertNone(String line, String... parts) {
        for (String part : parts) {
            assertThat(millis(line, part)).as("%s of %s", part, line).isZero();
        }
    }

    @ParameterizedTest
    @EnumSource(HandlerKind.class)
    void aWriteThatMetAStallSaysSo(HandlerKind handler) throws Exception {
        SlowDiskStore slow = new SlowDiskStore(WalMode.OS, Duration.ofMillis(PLANTED_MILLIS));
        try (TestServer server = serverOf(slow.store(), handler);
                Gate gate = slow::letFlushesGo) {
            slow.stallWrites();
            assertThat(server.ask(put("/v0/entity?id=stalled", "v".repeat(500))).status())
                    .isEqualTo(503);
            String line = lineOf("method=PUT, target=/v0/entity?id=stalled");
            assertThat(line).contains("status=503");
            assertThat(millis(line, "stall")).as(line).isGreaterThanOrEqualTo(PLANTED_MILLIS);
            assertNone(line, "sync");
        }
    }

    @ParameterizedTest
    @EnumSource(HandlerKind.class)
    void aWriteThatWaitedForASlowSyncSaysSo(HandlerKind handler) throws Exception {
        SlowDiskStore slow = new SlowDiskStore(WalMode.ALWAYS, Duration.ZERO);
        try (TestServer server = serverOf(slow.store(), handler)) {
            slow.slowSyncs(PLANTED_MILLIS);
            assertThat(server.ask(put("/v0/entity?id=synced", "value")).status())
                    .isEqualTo(201);
            String line = lineOf("method=PUT, target=/v0/entity?id=synced");
            assertThat(line).contains("status=201");
            assertThat(millis(line, "sync")).as(line).isGreaterThanOrEqualTo(PLANTED_MILLIS);
            assertNone(line, "stall");
            slow.slowSyncs(0);
        }
    }

    @Test
    void writesOfARoundThatShareASyncAllSayThatTheyWaitedForIt() throws Exception {
        SlowDiskStore slow = new SlowDiskStore(WalMode.ALWAYS, Duration.ZERO);
        try (TestServer server = serverOf(slow.store(), HandlerKind.SELECTOR);
                RawClient first = server.connect();
                RawClient second = server.connect();
                RawClient third = server.connect()) {
            slow.slowSyncs(PLANTED_MILLIS);
            first.send(put("/v0/entity?id=first", "value"));
            second.send(put("/v0/entity?id=second", "value"));
            third.send(put("/v0/entity?id=third", "value"));
            for (RawClient client : List.of(first, second, third)) {
                assertThat(client.read().status()).isEqualTo(201);
            }
            for (String id : List.of("first", "second", "third")) {
                String line = lineOf("target=/v0/entity?id=" + id);
                assertThat(millis(line, "sync")).as(line).isGreaterThanOrEqualTo(PLANTED_MILLIS);
            }
            slow.slowSyncs(0);
        }
    }

    @ParameterizedTest
    @EnumSource(HandlerKind.class)
    void aReadThatWaitedForASlowDiskSaysSo(HandlerKind handler) throws Exception {
        SlowDiskStore slow = SlowDiskStore.largerThanMemory();
        slow.store().put("a".getBytes(ISO_8859_1), new byte[100]);
        slow.store().administration().flush(() -> false);
        try (TestServer server = serverOf(slow.store(), handler)) {
            slow.slowReads(PLANTED_MILLIS);
            for (String target : List.of("/v0/entity?id=a", "/v0/entities?start=a")) {
                assertThat(server.ask(get(target)).status()).isEqualTo(200);
                String line = lineOf("method=GET, target=" + target);
                assertThat(millis(line, "disk")).as(line).isGreaterThanOrEqualTo(PLANTED_MILLIS);
                assertNone(line, "stall", "sync");
            }
            slow.slowReads(0);
        }
    }

    private static int pageFaults(String line) {
        Matcher found = Pattern.compile(", page_faults=([0-9]+)$").matcher(line);
        assertThat(found.find()).as(line).isTrue();
        return Integer.parseInt(found.group(1));
    }

    @ParameterizedTest
    @EnumSource(HandlerKind.class)
    void aReadThatWaitedInPageFaultsSaysInHowMany(HandlerKind handler) throws Exception {
        assumeTrue(MajorFaults.ofThreadOrNull() != null, "nobody can tell here");
        try (ColdPages cold = new ColdPages(directory, COLD_PAGES);
                TestServer server = serverOf(new FaultingStore(cold), handler)) {
            assertThat(server.ask(get("/v0/entity?id=cold")).status()).isEqualTo(404);
            assertThat(server.ask(get("/v0/entity?id=cold-no-more")).status()).isEqualTo(404);
            String line = lineOf("target=/v0/entity?id=cold");
            assertThat(pageFaults(line)).as(line).isGreaterThanOrEqualTo(COLD_PAGES);
            assertNone(line, "stall", "sync", "disk");
            String next = lineOf("target=/v0/entity?id=cold-no-more");
            assertThat(pageFaults(next)).as(next).isLessThan(COLD_PAGES);
        }
    }

    @Test
    void readsOfARoundWhosePrefetchWaitedInPageFaultsAllSayInHowMany() throws Exception {
        assumeFalse(one.nio.net.Socket.USE_NATIVE_SOCKET, "with one-nio's native library there are no rounds");
        assumeTrue(MajorFaults.ofThreadOrNull() != null, "nobody can tell here");
        try (ColdPages cold = new ColdPages(directory, COLD_PAGES)) {
            readInOneRound(new FaultingStore(cold));
        }
        for (String id : List.of("cold1", "cold2")) {
            String line = lineOf("target=/v0/entity?id=" + id);
            assertThat(pageFaults(line)).as(line).isGreaterThanOrEqualTo(COLD_PAGES);
        }
    }

    /// Until the gate is let go; what the others send by then is one round.
    private static void holdTheSelector(GatedStore store, RawClient gatekeeper, RawClient... others) throws Exception {
        for (RawClient client : others) { // the selector knows them all
            assertThat(client.ask(get("/v0/entity?id=a")).status()).isEqualTo(404);
        }
        assertThat(gatekeeper.ask(get("/v0/entity?id=a")).status()).isEqualTo(404);
        gatekeeper.send(get("/v0/entity?id=gate"));
        store.atGate.acquireUninterruptibly();
    }

    private void readInOneRound(GatedStore gated) throws Exception {
        try (TestServer server = serverOf(gated, HandlerKind.SELECTOR);
                RawClient gatekeeper = server.connect();
                RawClient first = server.connect();
                RawClient second = server.connect();
                Gate gate = gated.gate::release) {
            holdTheSelector(gated, gatekeeper, first, second);
            first.send(get("/v0/entity?id=cold1"));
            second.send(get("/v0/entity?id=cold2"));
            gated.gate.release();
            for (RawClient client : List.of(gatekeeper, first, second)) {
                assertThat(client.read().status()).isEqualTo(404);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = HandlerKind.class,
            names = {"WORKERS", "VIRTUAL"})
    void aRequestThatWaitedForAWorkerSaysSo(HandlerKind handler) throws Exception {
        GatedStore store = new GatedStore();
        try (TestServer server = serverOf(store, handler);
                RawClient slow = server.connect();
                RawClient quick = server.connect();
                Gate gate = store.gate::release) {
            slow.send(get("/v0/entity?id=gate"));
            store.atGate.acquireUninterruptibly();
            quick.send(get("/v0/entity?id=quick"));
            Eventually.holds(() -> server.server.handler().waiting() == 1);
            sleep();
            store.gate.release();
            assertThat(quick.read().status()).isEqualTo(404);
            assertThat(slow.read().status()).isEqualTo(404);
            String behind = lineOf("method=GET, target=/v0/entity?id=quick");
            assertThat(millis(behind, "queue")).as(behind).isGreaterThan(PLANTED_MILLIS / 2.0);
            assertNone(behind, "stall", "sync");
            String gated = lineOf("target=/v0/entity?id=gate");
            assertThat(millis(gated, "own")).isGreaterThan(PLANTED_MILLIS / 2.0);
        }
    }

    @Test
    void aRequestBehindASlowOneOfItsRoundSaysSo() throws Exception {
        assumeFalse(one.nio.net.Socket.USE_NATIVE_SOCKET, "with one-nio's native library there are no rounds");
        GatedStore store = new GatedStore();
        try (TestServer server = serverOf(store, HandlerKind.SELECTOR);
                RawClient gatekeeper = server.connect();
                RawClient writer = server.connect();
                RawClient reader = server.connect();
                Gate gate = store.gate::release) {
            holdTheSelector(store, gatekeeper, writer, reader);
            writer.send(put("/v0/entity?id=behind", "value")); // a round answers its GETs first
            reader.send(get("/v0/entity?id=slow"));
            store.gate.release();
            assertThat(writer.read().status()).isEqualTo(201);
            assertThat(reader.read().status()).isEqualTo(404);
            String behind = lineOf("method=PUT, target=/v0/entity?id=behind");
            assertThat(millis(behind, "round")).as(behind).isGreaterThanOrEqualTo(PLANTED_MILLIS);
            assertNone(behind, "stall", "sync", "queue");
            String slow = lineOf("method=GET, target=/v0/entity?id=slow");
            assertThat(millis(slow, "own")).as(slow).isGreaterThanOrEqualTo(PLANTED_MILLIS);
            assertNone(slow, "stall", "sync", "queue");
        }
    }

    @Test
    void aConnectionsNextRequestDoesNotInheritTheWaitsOfTheOneBefore() throws Exception {
        SlowDiskStore slow = new SlowDiskStore(WalMode.ALWAYS, Duration.ZERO);
        try (TestServer server = serverOf(slow.store(), HandlerKind.WORKERS);
                RawClient client = server.connect()) {
            slow.slowSyncs(PLANTED_MILLIS);
            assertThat(client.ask(put("/v0/entity?id=one", "value")).status()).isEqualTo(201);
            assertThat(client.ask(put("/v0/entity?id=two", "value")).status()).isEqualTo(201);
            lineOf("target=/v0/entity?id=one"); // whose parts are no more than its total
            lineOf("target=/v0/entity?id=two");
            slow.slowSyncs(0);
        }
    }

    @Test
    void withoutTheOptionNobodyWatchesAndNothingIsWritten() throws Exception {
        try (TestServer server = new TestServer(new GatedStore(), HttpOptions.onFreePort())) {
            assertThat(server.ask(get("/v0/entity?id=slow")).status()).isEqualTo(404);
            assertThat(server.server.router().slowRequestsOrNull()).isNull();
        }
    }

    private static Request request(String key) {
        Request request = new Request(new MemoryBudget(0).account());
        request.clear();
        request.method = Request.Method.GET;
        request.target = Target.ENTITY;
        request.key = key.getBytes(ISO_8859_1);
        request.startNanos = System.nanoTime();
        return request;
    }

    @Test
    void onlySoManyLinesASecondAreWrittenAndThoseLeftOutAreCounted() {
        SlowRequestLog log = SlowRequestLog.orNull(1);
        log.lines = lines::add;
        Request request = request("a");
        long end = request.startNanos + 1_000_000;
        for (int i = 0; i < SlowRequestLog.LINES_PER_SECOND_MAX + 15; i++) {
            log.answered(request, 200, end);
        }
        assertThat(lines).hasSize(SlowRequestLog.LINES_PER_SECOND_MAX).noneMatch(line -> line.contains("left_out"));
        log.answered(request, 200, end + 2_000_000_000L);
        assertThat(lines.getLast()).endsWith(", left_out_before=15");
        for (int i = 0; i < SlowRequestLog.LINES_PER_SECOND_MAX; i++) {
            log.answered(request, 200, end + 2_000_000_000L);
        }
        log.end();
        assertThat(lines.getLast()).isEqualTo("slow requests left out at the end: count=1");
    }

    @Test
    void whatIsNotSlowIsLeftOutAndKeysCannotForgeALine() {
        SlowRequestLog log = SlowRequestLog.orNull(5);
        log.lines = lines::add;
        Request request = request("a, status=200\nslow request: é" + "x".repeat(1_000));
        log.answered(request, 200, request.startNanos + 4_999_999);
        assertThat(lines).isEmpty();
        log.answered(request, 404, request.startNanos + 5_000_000);
        assertThat(lines).hasSize(1);
        assertThat(lines.getFirst())
                .startsWith("slow request: method=GET, target=/v0/entity?id=a,")
                .contains("a,\\x20status=200\\x0aslow\\x20request:\\x20\\xe9xxx")
                .contains("... (1029 bytes), status=404, total_ms=5.000, stall_ms=0.000,")
                .hasSizeLessThan(400);
    }
}
