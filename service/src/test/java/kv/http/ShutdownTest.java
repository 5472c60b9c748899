package kv.http;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.ConnectException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import kv.Eventually;
import kv.lsm.PendingWrite;
import kv.lsm.StoreMetrics;
import kv.lsm.WriteBatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// An orderly stop answers what was accepted, says that it is the last answer, and loses nothing.
class ShutdownTest {

    /// A client that never ends its request would hold a stop up for as long as it may drain.
    @Test
    void aStopWaitsNoLongerForRequestsUnderWayThanItMayDrain() throws IOException {
        MemoryStore store = new MemoryStore();
        TestServer server = new TestServer(store, HttpOptions.onFreePort().withOperations(new Operations(false, 300)));
        try (RawClient client = server.connect()) {
            client.ask(get("/v0/status"));
            client.send("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel");
            long start = System.nanoTime();
            server.server.stopInOrder();
            assertThat((System.nanoTime() - start) / 1e9).isBetween(0.25, 8.0); // 10 by default
        }
        store.close();
    }

    @Test
    void aStopDoesNotWaitForAClientThatSentAnEmptyLineBehindABody() throws IOException {
        MemoryStore store = new MemoryStore();
        TestServer server =
                new TestServer(store, HttpOptions.onFreePort().withOperations(new Operations(false, 40_000)));
        try (RawClient client = server.connect()) {
            assertThat(client.ask(put("/v0/entity?id=a", "v") + "\r\n").status())
                    .isEqualTo(201);
            long start = System.nanoTime();
            server.server.stopInOrder();
            assertThat((System.nanoTime() - start) / 1e9)
                    .as("seconds of the stop")
                    .isLessThan(20.0);
        }
        store.close();
    }

    /// Every call waits until the gate opens, and no interrupt reaches it.
    private static final class StuckStore extends MemoryStore {
        final Semaphore entered = new Semaphore(0);
        final Semaphore gate = new Semaphore(0);

        private void stick() {
            entered.release();
            gate.acquireUninterruptibly();
        }

        @Override
        public PendingWrite tryBegin(byte[] key, byte[] valueOrNull) {
            return null;
        }

        @Override
        public PendingWrite begin(byte[] key, byte[] valueOrNull) {
            stick();
            return PendingWrite.DONE;
        }

        @Override
        public PendingWrite begin(WriteBatch batch) {
            stick();
            return PendingWrite.DONE;
        }

        @Override
        public byte[] get(byte[] key) {
            stick();
            return null;
        }

        @Override
        public StoreMetrics metrics() {
            stick();
            return super.metrics();
        }
    }

    @Test
    void aWriteThatWouldWaitWhenNothingIsWaitedForAnyMoreIsToldOfTheStop() throws IOException {
        StuckStore store = new StuckStore();
        try (TestServer server = new TestServer(store);
                RawClient client = server.connect()) {
            client.ask(get("/v0/live"));
            server.server.router().stopping();
            server.server.stalledWrites().end();
            RawClient.Reply reply = client.ask(put("/v0/entity?id=a", "v"));
            assertThat(reply.status()).isEqualTo(503);
            assertThat(reply.text()).isEqualTo("stopping\n");
        }
    }

    /// A stalled write, a batch, a read of many keys and metrics: each waits on threads of its own.
    @Test
    void aStopGivesUpAllThatWaitsWhenItMayDrainNoLonger() throws Exception {
        List<String> requests = List.of(
                put("/v0/entity?id=a", "v"),
                "POST /v0/entities/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\nput 1 1\nav\n",
                "POST /v0/entities/get HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n1\na\n",
                get("/metrics"));
        StuckStore store = new StuckStore();
        TestServer server = new TestServer(store, HttpOptions.onFreePort().withOperations(new Operations(false, 500)));
        List<RawClient> clients = new ArrayList<>();
        try {
            for (String request : requests) {
                clients.add(server.connect().send(request));
            }
            assertThat(store.entered.tryAcquire(requests.size(), 1, TimeUnit.MINUTES))
                    .isTrue();
            long start = System.nanoTime();
            server.server.stopInOrder();
            assertThat((System.nanoTime() - start) / 1e9)
                    .as("seconds of the stop")
                    .isBetween(0.45, 8.0);
            for (RawClient client : clients) {
                assertThat(client.isClosedByServer()).isTrue();
            }
        } finally {
            store.gate.release(1_000);
            for (RawClient client : clients) {
                client.close();
            }
        }
        store.close();
    }

    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void whatWasAcknowledgedUnderLoadIsInTheStoreAndNoAnswerIsCut(HttpOptions.HandlerKind kind) throws Exception {
        MemoryStore store = new MemoryStore();
        TestServer server = new TestServer(store, HttpOptions.onFreePort().withHandler(kind, 4, 64));
        Set<String> acknowledged = ConcurrentHashMap.newKeySet();
        Set<String> faults = ConcurrentHashMap.newKeySet();
        CountDownLatch warm = new CountDownLatch(8);
        List<Thread> clients = new ArrayList<>();
        for (int c = 0; c < 8; c++) {
            String name = "c" + c + "-";
            clients.add(Thread.startVirtualThread(() -> {
                try (RawClient client = server.connect()) {
                    for (int i = 0; ; i++) {
                        RawClient.Reply reply = client.ask(put("/v0/entity?id=" + name + i, "v"));
                        if (reply.status() == 201) {
                            acknowledged.add(name + i);
                        } else {
                            faults.add("status " + reply.status());
                        }
                        if (i == 50) {
                            warm.countDown();
                        }
                        if (reply.closes()) {
                            if (!client.isClosedByServer()) {
                                faults.add("bytes after the last answer");
                            }
                            return;
                        }
                    }
                } catch (IOException | RuntimeException e) { // what reads an answer that is cut may find it malformed
                    faults.add("connection lost instead of answered: " + e);
                }
            }));
        }
        boolean allAnswered = warm.await(1, TimeUnit.MINUTES);
        server.server.stopInOrder();
        for (Thread client : clients) {
            assertThat(client.join(Duration.ofMinutes(1))).as("a client's end").isTrue();
        }
        assertThat(allAnswered)
                .as("every client got 50 answers before the stop")
                .isTrue();
        assertThat(faults).isEmpty();
        for (String key : acknowledged) {
            assertThat(store.get(key.getBytes(US_ASCII))).as(key).isNotNull();
        }
    }

    @Test
    void aRequestInAWorkerIsAnsweredAndSoAreTheOnesThatWait() throws Exception {
        MemoryStore store = new MemoryStore();
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch gate = new CountDownLatch(1);
        store.beforeEach = () -> {
            entered.countDown();
            try {
                gate.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        };
        TestServer server =
                new TestServer(store, HttpOptions.onFreePort().withHandler(HttpOptions.HandlerKind.WORKERS, 1, 16));
        List<RawClient> clients = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            RawClient client = server.connect();
            client.send(put("/v0/entity?id=k" + i, "v"));
            clients.add(client);
        }
        Thread stop;
        try {
            assertThat(entered.await(1, TimeUnit.MINUTES)).isTrue();
            Eventually.holds(() -> server.server.handler().waiting() == 4);
            stop = Thread.startVirtualThread(server.server::stopInOrder);
            Eventually.holds(() -> server.server.router().isStopping());
        } finally {
            gate.countDown();
        }
        for (RawClient client : clients) {
            assertThat(client.read().status()).isEqualTo(201);
            client.close();
        }
        assertThat(stop.join(Duration.ofMinutes(1))).isTrue();
    }

    /// More than the sockets take: the rest is sent while the server stops.
    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void whoReadsSlowlyGetsTheWholeAnswerWhileTheServerDrainsAndWhoNeverReadsHoldsItUpNoLonger(
            HttpOptions.HandlerKind kind) throws Exception {
        MemoryStore store = new MemoryStore();
        byte[] value = new byte[8 << 20];
        value[value.length - 1] = 1;
        store.put(new byte[] {'a'}, value);
        HttpOptions options = HttpOptions.onFreePort()
                .withHandler(kind, 2, 16)
                .withLimits(value.length, 100)
                .withOperations(new Operations(false, 5_000));
        TestServer server = new TestServer(store, options);
        try (RawClient slow = new RawClient(server.server.port(), 4_096);
                RawClient deaf = new RawClient(server.server.port(), 4_096)) {
            slow.send(get("/v0/entity?id=a"));
            deaf.send(get("/v0/entity?id=a") + get("/v0/entities?start=a"));
            Eventually.holds(() -> server.server.budget().bytesTaken() > value.length);
            long start = System.nanoTime();
            Thread stop = Thread.startVirtualThread(server.server::stopInOrder);
            Eventually.holds(() -> server.server.router().isStopping());
            RawClient.Reply reply = slow.read();
            assertThat(reply.status()).isEqualTo(200);
            assertThat(reply.body()).isEqualTo(value);
            assertThat(stop.join(Duration.ofMinutes(1))).isTrue();
            assertThat((System.nanoTime() - start) / 1e9)
                    .as("seconds of the stop")
                    .isBetween(4.9, 60.0);
        }
        assertThat(server.server.budget().bytesTaken()).isZero();
    }

    @Test
    void afterTheStopNobodyIsAccepted() throws IOException {
        TestServer server = new TestServer(new MemoryStore());
        try (RawClient idle = server.connect()) {
            idle.ask(get("/v0/status"));
            server.close();
            assertThat(idle.isClosedByServer()).isTrue();
        }
        org.assertj.core.api.Assertions.assertThatThrownBy(server::connect).isInstanceOf(ConnectException.class);
    }
}
