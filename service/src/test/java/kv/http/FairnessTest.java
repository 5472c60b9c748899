package kv.http;

import static kv.http.RawClient.get;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.api.Test;

/// A client that asks for much at once does not keep its selector to itself.
class FairnessTest {
    private static final HttpOptions ONE_SELECTOR = HttpOptions.onFreePort().withSelectors(1);

    @Test
    void aClientThatSendsManyRequestsAtOnceLetsOthersHaveTheirTurn() throws Exception {
        int flood = 1_500;
        int turn = 128;
        CountDownLatch began = new CountDownLatch(1);
        CountDownLatch otherSent = new CountDownLatch(1);
        AtomicInteger gets = new AtomicInteger();
        AtomicIntegerArray atAnswer = new AtomicIntegerArray(1);
        MemoryStore store = new MemoryStore() {
            @Override
            public byte[] get(byte[] key) {
                if (key[0] == 'b') {
                    atAnswer.set(0, gets.get());
                } else if (gets.incrementAndGet() == 1) {
                    began.countDown();
                    try {
                        otherSent.await();
                        Thread.sleep(20); // until it has come through the loopback device
                    } catch (InterruptedException e) {
                        throw new AssertionError(e);
                    }
                }
                return new byte[] {1};
            }
        };
        try (TestServer server = new TestServer(store, ONE_SELECTOR);
                RawClient greedy = server.connect();
                RawClient other = server.connect()) {
            assertThat(other.ask(get("/v0/status")).status()).isEqualTo(200);
            greedy.send(get("/v0/entity?id=a").repeat(flood));
            began.await();
            other.send(get("/v0/entity?id=b"));
            otherSent.countDown();
            assertThat(other.read().status()).isEqualTo(200);
            assertThat(atAnswer.get(0))
                    .as("requests of the other client that were answered before")
                    .isBetween(1, 2 * turn);
            for (int i = 0; i < flood; i++) {
                assertThat(greedy.read().body()).hasSize(1);
            }
            assertThat(greedy.ask(get("/v0/status")).status())
                    .as("the connection goes on")
                    .isEqualTo(200);
        }
    }

    @Test
    void aFloodWhoseClientEndsItsInputIsAnsweredToItsEnd() throws Exception {
        try (TestServer server = new TestServer(new MemoryStore(), ONE_SELECTOR);
                RawClient greedy = server.connect()) {
            greedy.send(get("/v0/status").repeat(1_000)
                    + "GET /v0/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            greedy.endOfInput();
            for (int i = 0; i < 1_001; i++) {
                assertThat(greedy.read().status()).isEqualTo(200);
            }
            assertThat(greedy.isClosedByServer()).isTrue();
        }
    }

    @Test
    void aFloodThatEndsWithoutSayingSoIsAnsweredToItsEnd() throws Exception {
        try (TestServer server = new TestServer(new MemoryStore(), ONE_SELECTOR);
                RawClient greedy = server.connect()) {
            greedy.send(get("/v0/status").repeat(1_000));
            greedy.endOfInput();
            for (int i = 0; i < 1_000; i++) {
                assertThat(greedy.read().status()).isEqualTo(200);
            }
            assertThat(greedy.isClosedByServer()).isTrue();
        }
    }
}
