package kv.http;

import static kv.http.RawClient.delete;
import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import kv.Eventually;
import kv.lsm.PendingWrite;
import org.junit.jupiter.api.Test;

/// Writes that wait for the disk, as all do with `--wal always`, and are sent one behind the other: each waits for
/// a sync of its own, and nobody else waits with them.
class SyncedPipelineTest {
    private static final HttpOptions ONE_SELECTOR = HttpOptions.onFreePort().withSelectors(1);

    /// Acknowledges no write before the gate opens.
    private static final class SyncedStore extends MemoryStore {
        final CountDownLatch gate = new CountDownLatch(1);
        final AtomicInteger waiting = new AtomicInteger();

        @Override
        public boolean writesWaitForDisk() {
            return true;
        }

        @Override
        public PendingWrite begin(byte[] key, byte[] valueOrNull) {
            return () -> {
                waiting.incrementAndGet();
                try {
                    gate.await();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
                super.begin(key, valueOrNull).await();
            };
        }
    }

    /// Opened before the server is closed, so that a test that fails ends.
    private interface Gate extends AutoCloseable {
        @Override
        void close();
    }

    private final SyncedStore store = new SyncedStore();

    @Test
    void othersAreAnsweredMeanwhileAndTheWritesOneAfterTheOtherInOrder() throws Exception {
        try (TestServer server = new TestServer(store, ONE_SELECTOR);
                RawClient writer = server.connect();
                RawClient reader = server.connect();
                Gate gate = store.gate::countDown) {
            String id = "/v0/entity?id=a";
            writer.send(put(id, "one") + put(id, "two") + get(id) + delete(id) + get(id));
            Eventually.holds(() -> store.waiting.get() > 0);
            for (int i = 0; i < 20; i++) {
                assertThat(reader.ask(get(id)).status()).isEqualTo(404);
            }
            assertThat(store.waiting.get())
                    .as("writes begun of those behind each other")
                    .isEqualTo(1);
            store.gate.countDown();
            assertThat(writer.read().status()).isEqualTo(201);
            assertThat(writer.read().status()).isEqualTo(201);
            assertThat(writer.read().text()).isEqualTo("two");
            assertThat(writer.read().status()).isEqualTo(202);
            assertThat(writer.read().status()).isEqualTo(404);
            Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
        }
    }

    @Test
    void writesBehindEachOtherAreNotRefusedWhereNoMoreConnectionsAreAllowed() throws Exception {
        store.gate.countDown();
        try (TestServer server = new TestServer(store, ONE_SELECTOR.withLimits(1 << 20, 1));
                RawClient client = server.connect()) {
            for (int round = 0; round < 100; round++) {
                client.send(put("/v0/entity?id=a", "one").repeat(5));
                for (int i = 0; i < 5; i++) {
                    assertThat(client.read().status()).isEqualTo(201);
                }
            }
        }
    }

    /// More than are read at once, and more than a client gets in one turn; half of the last comes later.
    @Test
    void aLongPipelineIsAnsweredToItsEnd() throws Exception {
        int requests = 1_000;
        store.gate.countDown();
        StringBuilder pipeline = new StringBuilder();
        for (int i = 0; i < requests; i++) {
            pipeline.append(put("/v0/entity?id=k" + i % 7, "value " + i)).append(get("/v0/entity?id=k" + i % 7));
        }
        String last = put("/v0/entity?id=last", "value");
        try (TestServer server = new TestServer(store, ONE_SELECTOR);
                RawClient client = server.connect()) {
            Thread sender = Thread.startVirtualThread(() -> {
                try {
                    client.send(pipeline + last.substring(0, last.length() - 3));
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
            for (int i = 0; i < requests; i++) {
                assertThat(client.read().status()).isEqualTo(201);
                assertThat(client.read().text()).isEqualTo("value " + i);
            }
            sender.join();
            assertThat(client.ask(last.substring(last.length() - 3)).status()).isEqualTo(201);
            assertThat(client.ask(get("/v0/entity?id=last")).text()).isEqualTo("value");
        }
    }

    @Test
    void aClientThatEndsItsSideGetsAllItsAnswers() throws Exception {
        store.gate.countDown();
        try (TestServer server = new TestServer(store, ONE_SELECTOR);
                RawClient client = server.connect()) {
            client.send(put("/v0/entity?id=a", "one") + put("/v0/entity?id=a", "two") + get("/v0/entity?id=a"))
                    .endOfInput();
            assertThat(client.read().status()).isEqualTo(201);
            assertThat(client.read().status()).isEqualTo(201);
            assertThat(client.read().text()).isEqualTo("two");
            assertThat(client.isClosedByServer()).isTrue();
        }
    }
}
