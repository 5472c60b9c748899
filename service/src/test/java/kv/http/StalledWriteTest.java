package kv.http;

import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import kv.Eventually;
import kv.lsm.PendingWrite;
import kv.lsm.StallCause;
import kv.lsm.WriteBatch;
import kv.lsm.WriteStalledException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Writes that wait for flush or compaction hold up their own connections and nobody else, whatever threads run
/// requests.
class StalledWriteTest {
    private static final int WRITERS = 20;

    /// Stalled until the gate opens; then over the limit, or not.
    private static final class StalledStore extends MemoryStore {
        final CountDownLatch gate = new CountDownLatch(1);
        final AtomicInteger waiting = new AtomicInteger();
        volatile boolean overTheLimit;

        @Override
        public PendingWrite tryBegin(byte[] key, byte[] valueOrNull) {
            return gate.getCount() > 0 ? null : super.tryBegin(key, valueOrNull);
        }

        @Override
        public PendingWrite begin(byte[] key, byte[] valueOrNull) {
            awaitGate();
            if (overTheLimit) {
                throw new WriteStalledException(StallCause.LEVEL0_STOP, Duration.ofSeconds(1), null);
            }
            return super.begin(key, valueOrNull);
        }

        @Override
        public PendingWrite begin(WriteBatch batch) {
            awaitGate();
            return PendingWrite.DONE;
        }

        private void awaitGate() {
            waiting.incrementAndGet();
            try {
                gate.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }

    /// Opened before the server is closed, so that a test that fails ends.
    private interface Gate extends AutoCloseable {
        @Override
        void close();
    }

    private final StalledStore store = new StalledStore();

    private TestServer serverOf(HttpOptions.HandlerKind handler) throws Exception {
        return new TestServer(store, HttpOptions.onFreePort().withSelectors(1).withHandler(handler, 1, 100));
    }

    private void awaitWriters() throws Exception {
        Eventually.holds(() -> store.waiting.get() >= WRITERS);
    }

    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void othersAreAnsweredMeanwhileAndTheWritesAfterwardsInOrder(HttpOptions.HandlerKind handler) throws Exception {
        List<RawClient> writers = new ArrayList<>();
        try (TestServer server = serverOf(handler);
                RawClient reader = server.connect();
                Gate gate = store.gate::countDown) {
            for (int i = 0; i < WRITERS; i++) {
                RawClient writer = server.connect();
                writers.add(writer);
                writer.send(put("/v0/entity?id=k" + i, "value " + i)
                        + get("/v0/entity?id=k" + i)
                        + RawClient.delete("/v0/entity?id=k" + i));
            }
            awaitWriters();
            for (int i = 0; i < 50; i++) { // none of the writes is answered before all of these are
                assertThat(reader.ask(get("/v0/entity?id=k1")).status()).isEqualTo(404);
                assertThat(reader.ask(get("/v0/status")).status()).isEqualTo(200);
                assertThat(reader.ask(get("/v0/entities?start=a")).body()).isEmpty();
            }
            store.gate.countDown();
            for (int i = 0; i < WRITERS; i++) {
                assertThat(writers.get(i).read().status()).isEqualTo(201);
                assertThat(writers.get(i).read().text()).isEqualTo("value " + i);
                assertThat(writers.get(i).read().status()).isEqualTo(202);
            }
            Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
        } finally {
            for (RawClient writer : writers) {
                writer.close();
            }
        }
    }

    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void aWriteOverTheLimitGets503AndItsConnectionGoesOn(HttpOptions.HandlerKind handler) throws Exception {
        store.overTheLimit = true;
        try (TestServer server = serverOf(handler);
                RawClient writer = server.connect();
                Gate gate = store.gate::countDown) {
            writer.send(put("/v0/entity?id=a", "value"));
            Eventually.holds(() -> store.waiting.get() > 0);
            store.gate.countDown();
            RawClient.Reply reply = writer.read();
            assertThat(reply.status()).isEqualTo(503);
            assertThat(reply.headers()).containsKey("retry-after");
            store.overTheLimit = false;
            assertThat(writer.ask(put("/v0/entity?id=a", "value")).status()).isEqualTo(201);
        }
    }

    private static String post(String what, String body) {
        return "POST /v0/entities/" + what + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + body.length() + "\r\n\r\n"
                + body;
    }

    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void batchesThatWaitHoldUpNoReadOfManyKeys(HttpOptions.HandlerKind handler) throws Exception {
        List<RawClient> writers = new ArrayList<>();
        try (TestServer server = serverOf(handler);
                RawClient reader = server.connect();
                Gate gate = store.gate::countDown) {
            for (int i = 0; i < 3; i++) { // one more than are served at a time
                writers.add(server.connect().send(post("batch", "put 1 1\nav\n")));
            }
            Eventually.holds(() -> store.waiting.get() == 2);
            assertThat(reader.ask(post("get", "1\na\n")).text()).isEqualTo("-1\n");
            store.gate.countDown();
            for (RawClient writer : writers) {
                assertThat(writer.read().text()).isEqualTo("1\n");
            }
        } finally {
            for (RawClient writer : writers) {
                writer.close();
            }
        }
    }

    @Test
    void aValueThatCameInPiecesIsPaidForOnceWhileItsWriteWaits() throws Exception {
        int bytes = 300_000; // more than is read at once
        try (TestServer server = serverOf(HttpOptions.HandlerKind.SELECTOR);
                RawClient writer = server.connect();
                Gate gate = store.gate::countDown) {
            writer.send(put("/v0/entity?id=a", "x".repeat(bytes)));
            Eventually.holds(() -> store.waiting.get() > 0);
            assertThat(server.server.budget().bytesTaken()).isEqualTo(bytes);
            store.gate.countDown();
            assertThat(writer.read().status()).isEqualTo(201);
            assertThat(store.get(new byte[] {'a'})).hasSize(bytes);
            Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
        }
    }

    @Test
    void clientsThatGoAwayWhileTheirWritesWaitLeaveNothingBehind() throws Exception {
        try (TestServer server = serverOf(HttpOptions.HandlerKind.SELECTOR);
                Gate gate = store.gate::countDown) {
            for (int i = 0; i < WRITERS; i++) {
                try (RawClient writer = server.connect()) {
                    writer.send(put("/v0/entity?id=k" + i, "x".repeat(100_000)));
                }
            }
            awaitWriters();
            store.gate.countDown();
            Eventually.holds(() -> server.server.connections().size() == 0);
            Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
            for (int i = 0; i < WRITERS; i++) {
                assertThat(store.get(("k" + i).getBytes())).hasSize(100_000);
            }
        }
    }
}
