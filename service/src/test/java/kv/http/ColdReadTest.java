package kv.http;

import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import kv.Eventually;
import kv.lsm.RangeCursor;
import kv.lsm.StoreException;
import org.junit.jupiter.api.Test;

/// GETs that wait for the disk hold up their own connections and nobody else.
class ColdReadTest {
    private static final int READERS = 8;

    /// Keys that begin with `cold` are on a disk that stands still until the gate opens.
    private static final class ColdStore extends MemoryStore {
        final CountDownLatch gate = new CountDownLatch(1);
        final AtomicInteger waiting = new AtomicInteger();
        volatile boolean diskFails;

        private static boolean isCold(byte[] key) {
            return new String(key).startsWith("cold");
        }

        @Override
        public byte[] tryGet(byte[] key, byte[] roomOrNull) {
            return isCold(key) ? WOULD_WAIT : super.get(key);
        }

        @Override
        public byte[] get(byte[] key) {
            await(key);
            return super.get(key);
        }

        @Override
        public boolean readsWaitForDisk() {
            return true;
        }

        @Override
        public RangeCursor range(byte[] start, byte[] endOrNull) {
            await(start);
            return super.range(start, endOrNull);
        }

        private void await(byte[] key) {
            if (!isCold(key)) {
                return;
            }
            waiting.incrementAndGet();
            try {
                gate.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
            if (diskFails) {
                throw new StoreException("the disk is gone", new IOException());
            }
        }
    }

    /// Opened before the server is closed, so that a test that fails ends.
    private interface Gate extends AutoCloseable {
        @Override
        void close();
    }

    private final ColdStore store = new ColdStore();

    private TestServer server() throws Exception {
        return new TestServer(store, HttpOptions.onFreePort().withSelectors(1));
    }

    @Test
    void othersAreAnsweredMeanwhileAndTheReadsAfterwardsInOrder() throws Exception {
        List<RawClient> readers = new ArrayList<>();
        try (TestServer server = server();
                RawClient other = server.connect();
                Gate gate = store.gate::countDown) {
            for (int i = 0; i < READERS; i++) {
                other.ask(put("/v0/entity?id=cold" + i, "cold value " + i));
            }
            other.ask(put("/v0/entity?id=warm", "warm value"));
            for (int i = 0; i < READERS; i++) { // alone in its packet, or with others behind it
                RawClient reader = server.connect();
                readers.add(reader);
                String cold = get("/v0/entity?id=cold" + i);
                reader.send(i % 2 == 0 ? cold : cold + get("/v0/entity?id=warm") + cold);
            }
            Eventually.holds(() -> store.waiting.get() >= READERS);
            for (int i = 0; i < 50; i++) {
                assertThat(other.ask(get("/v0/entity?id=warm")).text()).isEqualTo("warm value");
                assertThat(other.ask(put("/v0/entity?id=more", "x")).status()).isEqualTo(201);
                assertThat(other.ask(get("/v0/entities?start=warm")).status()).isEqualTo(200);
            }
            store.gate.countDown();
            for (int i = 0; i < READERS; i++) {
                assertThat(readers.get(i).read().text()).isEqualTo("cold value " + i);
                if (i % 2 != 0) {
                    assertThat(readers.get(i).read().text()).isEqualTo("warm value");
                    assertThat(readers.get(i).read().text()).isEqualTo("cold value " + i);
                }
            }
        } finally {
            for (RawClient reader : readers) {
                reader.close();
            }
        }
    }

    @Test
    void aRangeThatWaitsForTheDiskHoldsUpNobodyElse() throws Exception {
        try (TestServer server = server();
                RawClient reader = server.connect();
                RawClient other = server.connect();
                Gate gate = store.gate::countDown) {
            other.ask(put("/v0/entity?id=cold", "value"));
            reader.send(get("/v0/entities?start=cold"));
            Eventually.holds(() -> store.waiting.get() > 0);
            assertThat(other.ask(get("/v0/entity?id=absent")).status()).isEqualTo(404);
            store.gate.countDown();
            assertThat(reader.read().text()).isEqualTo("cold\nvalue");
        }
    }

    @Test
    void aReadThatFailsIsAnsweredAndItsConnectionGoesOn() throws Exception {
        store.diskFails = true;
        try (TestServer server = server();
                RawClient reader = server.connect();
                Gate gate = store.gate::countDown) {
            store.gate.countDown();
            assertThat(reader.ask(get("/v0/entity?id=cold")).status()).isEqualTo(500);
            assertThat(reader.ask(get("/v0/entity?id=warm")).status()).isEqualTo(404);
        }
    }

    @Test
    void clientsThatGoAwayWhileTheirReadsWaitLeaveNothingBehind() throws Exception {
        try (TestServer server = server();
                Gate gate = store.gate::countDown) {
            for (int i = 0; i < READERS; i++) {
                try (RawClient reader = server.connect()) {
                    reader.send(get("/v0/entity?id=cold" + i));
                }
            }
            Eventually.holds(() -> store.waiting.get() >= READERS);
            store.gate.countDown();
            Eventually.holds(() -> server.server.connections().size() == 0);
            Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
        }
    }
}
