package kv.http;

import static kv.http.RawClient.delete;
import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import kv.Eventually;
import kv.lsm.StallCause;
import kv.lsm.StoreClosedException;
import kv.lsm.StoreFailedException;
import kv.lsm.WriteStalledException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/// What a client sees when the store fails, waits, or there is more to do than may wait.
class FailureTest {
    static Stream<Arguments> failures() {
        return Stream.of(
                Arguments.of(new IllegalStateException("planted"), 500),
                Arguments.of(new StackOverflowError("planted"), 500),
                Arguments.of(new StoreFailedException("planted", null), 500),
                Arguments.of(new StoreClosedException(), 503),
                Arguments.of(new WriteStalledException(StallCause.LEVEL0_STOP, Duration.ofSeconds(1), null), 503));
    }

    /// Of every kind: each takes a way of its own to the store.
    private static final List<String> REQUESTS = List.of(
            put("/v0/entity?id=a", "one"),
            get("/v0/entity?id=a"),
            delete("/v0/entity?id=a"),
            get("/v0/entities?start=a"),
            "POST /v0/entities/get HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n1\na\n");

    @ParameterizedTest
    @MethodSource("failures")
    void anErrorOfTheStoreIsAnAnswerAndTheConnectionGoesOn(Throwable error, int status) throws IOException {
        for (HttpOptions.HandlerKind kind : HttpOptions.HandlerKind.values()) {
            MemoryStore store = new MemoryStore();
            try (TestServer server =
                            new TestServer(store, HttpOptions.onFreePort().withHandler(kind, 2, 16));
                    RawClient client = server.connect()) {
                for (String request : REQUESTS) {
                    String what = kind + ": " + request.lines().findFirst().orElseThrow();
                    store.beforeEach = () -> sneak(error);
                    RawClient.Reply reply = client.ask(request);
                    assertThat(reply.status()).as(what).isEqualTo(status);
                    assertThat(reply.closes()).as(what).isFalse();
                    if (status == 503) {
                        assertThat(reply.headers()).as(what).containsKey("retry-after");
                    }
                    store.beforeEach = () -> {};
                    assertThat(client.ask(get("/v0/entity?id=a")).status())
                            .as("what %s has done", what)
                            .isEqualTo(404);
                }
                assertThat(client.ask(put("/v0/entity?id=a", "two")).status()).isEqualTo(201);
                assertThat(client.ask(get("/v0/entity?id=a")).text()).isEqualTo("two");
            }
        }
    }

    /// As when there is no memory for the answer that it failed either. It is planted where the answer is counted.
    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void anErrorThatCannotBeAnsweredEndsItsConnectionAndKeepsNothing(HttpOptions.HandlerKind kind) throws IOException {
        MemoryStore store = new MemoryStore();
        HttpOptions options = HttpOptions.onFreePort()
                .withHandler(kind, 2, 16)
                .withOperations(Operations.DEFAULTS.withSlowRequestMillis(1));
        try (TestServer server = new TestServer(store, options)) {
            for (String request : REQUESTS) {
                String what = kind + ": " + request.lines().findFirst().orElseThrow();
                store.beforeEach = () -> LockSupport.parkNanos(2_000_000);
                server.server.router().slowRequestsOrNull().lines = line -> {
                    throw new OutOfMemoryError("planted");
                };
                try (RawClient client = server.connect()) {
                    client.send(request);
                    assertThat(client.isClosedByServer()).as(what).isTrue();
                }
                Eventually.holds(() -> server.server.connections().size() == 0);
                Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
                Eventually.holds(() -> store.openCursors.get() == 0);
                store.beforeEach = () -> {};
                server.server.router().slowRequestsOrNull().lines = line -> {};
                assertThat(server.ask(get("/v0/live")).status()).as(what).isEqualTo(200);
            }
            assertThat(server.ask(get("/v0/entity?id=b")).status()).isEqualTo(404);
        }
    }

    /// Where the disk is full, flush and compaction may have nothing to do: waiting for them helps nobody.
    @Test
    void aStalledWriteSaysWhetherItWaitsForFlushAndCompactionForOneThatFailsOrForALog() throws IOException {
        MemoryStore store = new MemoryStore();
        try (TestServer server = new TestServer(store)) {
            for (StallCause cause : StallCause.values()) {
                for (String reason : Arrays.asList(null, "No space left on device")) {
                    store.beforeEach = () -> sneak(new WriteStalledException(cause, Duration.ofSeconds(1), reason));
                    String failure = reason == null ? "writes are stalled until" : "fails and is tried again";
                    assertThat(server.ask(put("/v0/entity?id=a", "one")).text())
                            .contains(cause == StallCause.NO_LOG ? "no log can be made" : failure);
                }
            }
        }
    }

    /// A store whose disk has failed refuses every write: a stack trace a second would fill the log.
    @Test
    void anErrorOfTheDiskIsOneLineOfTheLogAndOneOfTheServiceItselfHasItsTrace() throws Exception {
        IOException disk = new IOException("planted");
        for (RuntimeException error : List.of(
                new StoreFailedException("the disk", disk),
                new WriteStalledException(StallCause.NO_LOG, Duration.ofSeconds(1), "the disk"))) {
            assertThat(linesOfAPutThatFailsWith(error))
                    .hasSize(1)
                    .first()
                    .asString()
                    .contains("request failed: method=PUT")
                    .contains("the disk");
        }
        assertThat(linesOfAPutThatFailsWith(new IllegalStateException("a bug")))
                .anyMatch(line -> line.startsWith("\tat "));
    }

    private static List<String> linesOfAPutThatFailsWith(RuntimeException error) throws Exception {
        MemoryStore store = new MemoryStore();
        store.beforeEach = () -> sneak(error);
        try (CapturedLog log = new CapturedLog(Router.class);
                TestServer server = new TestServer(store)) {
            server.ask(put("/v0/entity?id=a", "one"));
            return log.lines();
        }
    }

    private static void sneak(Throwable error) {
        switch (error) {
            case RuntimeException e -> throw e;
            case Error e -> throw e;
            default -> throw new AssertionError(error);
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = HttpOptions.HandlerKind.class,
            names = {"WORKERS", "VIRTUAL"})
    void moreRequestsThanMayWaitGet503AndNoneOfTheOthersIsLost(HttpOptions.HandlerKind kind) throws IOException {
        MemoryStore store = new MemoryStore();
        CountDownLatch gate = new CountDownLatch(1);
        AtomicInteger running = new AtomicInteger();
        store.beforeEach = () -> {
            running.incrementAndGet();
            await(gate);
        };
        int atOnce = 2;
        int queue = 3;
        List<RawClient> clients = new ArrayList<>();
        try (TestServer server = new TestServer(store, HttpOptions.onFreePort().withHandler(kind, atOnce, queue))) {
            for (int i = 0; i < atOnce + queue; i++) {
                RawClient client = server.connect();
                clients.add(client);
                client.send(put("/v0/entity?id=k" + i, "v" + i));
                int begun = Math.min(i + 1, atOnce);
                Eventually.holds(() -> running.get() == begun);
            }
            Eventually.holds(() -> server.server.handler().waiting() == queue);
            try (RawClient late = server.connect()) {
                RawClient.Reply refused = late.ask(put("/v0/entity?id=late", "x"));
                assertThat(refused.status()).isEqualTo(503);
                assertThat(refused.headers()).containsEntry("retry-after", "1");
                assertThat(refused.closes()).isFalse();
                gate.countDown();
                for (RawClient client : clients) {
                    assertThat(client.read().status()).isEqualTo(201);
                }
                assertThat(late.ask(get("/v0/entity?id=late")).status()).isEqualTo(404);
                for (int i = 0; i < clients.size(); i++) {
                    assertThat(late.ask(get("/v0/entity?id=k" + i)).text()).isEqualTo("v" + i);
                }
            }
        } finally {
            gate.countDown();
            for (RawClient client : clients) {
                client.close();
            }
        }
    }

    /// Or a busy service would be taken for a dead one, and restarted.
    @ParameterizedTest
    @EnumSource(
            value = HttpOptions.HandlerKind.class,
            names = {"WORKERS", "VIRTUAL"})
    void whoAsksWhetherItLivesAndIsReadyIsAnsweredThoughNobodyElseIs(HttpOptions.HandlerKind kind) throws IOException {
        MemoryStore store = new MemoryStore();
        CountDownLatch gate = new CountDownLatch(1);
        AtomicInteger running = new AtomicInteger();
        store.beforeEach = () -> {
            running.incrementAndGet();
            await(gate);
        };
        try (TestServer server = new TestServer(store, HttpOptions.onFreePort().withHandler(kind, 1, 1));
                RawClient runs = server.connect();
                RawClient waits = server.connect();
                RawClient asks = server.connect()) {
            runs.send(put("/v0/entity?id=a", "one"));
            Eventually.holds(() -> running.get() == 1);
            waits.send(put("/v0/entity?id=b", "two"));
            Eventually.holds(() -> server.server.handler().waiting() == 1);
            assertThat(asks.ask(get("/v0/entity?id=a")).status())
                    .as("the queue")
                    .isEqualTo(503);
            for (String target : List.of("/v0/live", "/v0/ready", "/v0/status")) {
                assertThat(asks.ask(get(target)).status()).as(target).isEqualTo(200);
            }
            gate.countDown();
            assertThat(runs.read().status()).isEqualTo(201);
            assertThat(waits.read().status()).isEqualTo(201);
        } finally {
            gate.countDown();
        }
    }

    @Test
    void aClientThatGoesAwayWhileItsRequestRunsDoesNoHarm() throws IOException {
        MemoryStore store = new MemoryStore();
        CountDownLatch gate = new CountDownLatch(1);
        CountDownLatch entered = new CountDownLatch(1);
        store.beforeEach = () -> {
            entered.countDown();
            await(gate);
        };
        try (TestServer server =
                new TestServer(store, HttpOptions.onFreePort().withHandler(HttpOptions.HandlerKind.WORKERS, 1, 16))) {
            try (RawClient leaving = server.connect()) {
                leaving.send(put("/v0/entity?id=a", "one"));
                await(entered);
            } finally {
                gate.countDown();
            }
            Eventually.holds(() -> server.server.connections().size() == 0);
            assertThat(server.ask(get("/v0/entity?id=a")).text()).isEqualTo("one");
            Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
