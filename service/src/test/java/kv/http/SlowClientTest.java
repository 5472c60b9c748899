package kv.http;

import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import kv.Eventually;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Slow and broken clients hold up nobody else, and hold neither memory nor connections for ever.
class SlowClientTest {
    private static final int LONG_MILLIS = 60_000;
    private final MemoryStore store = new MemoryStore();
    private final List<RawClient> clients = new ArrayList<>();
    private TestServer server;

    private RawClient connect() throws IOException {
        RawClient client = server.connect();
        clients.add(client);
        return client;
    }

    @AfterEach
    void stop() throws IOException {
        for (RawClient client : clients) {
            client.close();
        }
        server.close();
    }

    @Test
    void anIdleConnectionIsClosed() throws IOException {
        server = new TestServer(store, HttpOptions.onFreePort().withTimeouts(300, LONG_MILLIS));
        RawClient client = connect();
        assertThat(client.ask(get("/v0/status")).status()).isEqualTo(200);
        assertThat(client.isClosedByServer()).isTrue();
        Eventually.holds(() -> server.server.connections().size() == 0);
    }

    @Test
    void halfARequestGets408() throws IOException {
        server = new TestServer(store, HttpOptions.onFreePort().withTimeouts(LONG_MILLIS, 300));
        for (String half : new String[] {
            "G",
            "GET /v0/status HTTP/1.1\r\nHost",
            "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
            "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"
        }) {
            RawClient client = connect();
            RawClient.Reply reply = client.ask(half);
            assertThat(reply.status()).as(half).isEqualTo(408);
            assertThat(reply.closes()).isTrue();
            assertThat(client.isClosedByServer()).isTrue();
        }
        assertThat(server.ask(get("/v0/entity?id=a")).status()).isEqualTo(404);
    }

    @Test
    void aRequestThatWasAnsweredBeforeItsBodyEndedGetsNoSecondAnswer() throws IOException {
        server = new TestServer(store, HttpOptions.onFreePort().withTimeouts(LONG_MILLIS, 300));
        RawClient client = connect();
        String half = "POST /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf";
        assertThat(client.ask(half).status()).isEqualTo(405);
        assertThat(client.isClosedByServer()).isTrue();
    }

    @Test
    void anEmptyLineBehindABodyIsNoHalfRequest() throws IOException {
        server = new TestServer(store, HttpOptions.onFreePort().withTimeouts(LONG_MILLIS, 300));
        RawClient client = connect();
        assertThat(client.ask(put("/v0/entity?id=a", "value") + "\r\n").status())
                .isEqualTo(201);
        ConnectionTest.sleep(1_000);
        assertThat(client.ask(get("/v0/entity?id=a")).text()).isEqualTo("value");
    }

    @Test
    void aTrickleOfBytesDoesNotKeepHalfARequestAlive() throws IOException {
        server = new TestServer(store, HttpOptions.onFreePort().withTimeouts(LONG_MILLIS, 300));
        RawClient client = connect();
        Thread trickle = Thread.startVirtualThread(() -> {
            try {
                client.send("GET /v0/status HTTP/1.1\r\nHost: x\r\nX: ");
                for (int i = 0; i < 1_000; i++) {
                    client.send("y");
                    Thread.sleep(20);
                }
            } catch (IOException | InterruptedException e) {
                // the server has ended the connection, as it should
            }
        });
        assertThat(client.read().status()).isEqualTo(408);
        trickle.interrupt();
    }

    @Test
    void theTimeForARequestStartsAnewWithEachRequest() throws IOException {
        server = new TestServer(store, HttpOptions.onFreePort().withTimeouts(LONG_MILLIS, 2_000));
        RawClient client = connect();
        for (int i = 0; i < 30; i++) {
            String request = put("/v0/entity?id=a", "value");
            client.send(request.substring(0, request.length() - 3));
            ConnectionTest.sleep(100);
            assertThat(client.ask(request.substring(request.length() - 3)).status())
                    .isEqualTo(201);
        }
    }

    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void theTimeForARequestStartsAnewAlsoWhereHalfOfTheNextAlwaysCameWithTheLast(HttpOptions.HandlerKind kind)
            throws IOException {
        HttpOptions options = HttpOptions.onFreePort().withTimeouts(LONG_MILLIS, 2_000);
        server = new TestServer(store, options.withHandler(kind, 2, 16));
        RawClient client = connect();
        String request = put("/v0/entity?id=a", "value");
        String half = request.substring(0, request.length() - 3);
        String rest = request.substring(half.length());
        client.send(half);
        for (int i = 0; i < 30; i++) {
            ConnectionTest.sleep(100);
            assertThat(client.ask(rest + half).status()).isEqualTo(201);
        }
    }

    @Test
    void aClientThatTakesNothingOfItsAnswerIsClosed() throws IOException {
        server = new TestServer(store, HttpOptions.onFreePort().withTimeouts(500, LONG_MILLIS));
        byte[] key = {'a'};
        store.put(key, new byte[1 << 20]);
        RawClient client = new RawClient(server.server.port(), 4_096);
        clients.add(client);
        for (int i = 0; i < 30; i++) {
            client.send(get("/v0/entity?id=a"));
        }
        Eventually.holds(() -> server.server.budget().bytesTaken() > 0);
        Eventually.holds(() -> server.server.connections().size() == 0);
        Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
    }

    @Test
    void clientsThatDoNotReadDoNotHoldUpOthers() throws IOException {
        HttpOptions oneSelector = HttpOptions.onFreePort()
                .withSelectors(1)
                .withTimeouts(LONG_MILLIS, LONG_MILLIS)
                .withAnswerTimeout(LONG_MILLIS);
        server = new TestServer(store, oneSelector);
        store.put(new byte[] {'a'}, new byte[1 << 20]);
        for (int i = 0; i < 20; i++) {
            RawClient client = new RawClient(server.server.port(), 4_096);
            clients.add(client);
            client.send(get("/v0/entity?id=a") + get("/v0/entities?start=a") + "GET /v0/en");
        }
        for (int i = 0; i < 100; i++) {
            assertThat(server.ask(get("/v0/status")).status()).isEqualTo(200);
        }
    }

    @Test
    void promisedBodiesCostNothingAndSentOnesNoMoreThanTheBudget() throws IOException {
        long heap = Runtime.getRuntime().maxMemory();
        server = new TestServer(
                store, HttpOptions.onFreePort().withLimits(1 << 30, 1_000).withTimeouts(LONG_MILLIS, LONG_MILLIS));
        int promised = 1 << 30;
        for (int i = 0; i < 100; i++) {
            connect().send("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: " + promised + "\r\n\r\nx");
        }
        byte[] part = new byte[1 << 20];
        long sent = 0;
        List<RawClient> senders = List.copyOf(clients);
        while (sent < heap / 2) {
            for (RawClient sender : senders) {
                try {
                    sender.send(part);
                } catch (IOException e) {
                    // refused and closed: that is what the budget is for
                }
                sent += part.length;
                assertThat(server.server.budget().bytesTaken())
                        .as("after %d bytes", sent)
                        .isLessThanOrEqualTo(server.server.budget().bytesMax());
            }
        }
        assertThat(server.ask(get("/v0/status")).status()).isEqualTo(200);
        for (RawClient client : clients) {
            client.close();
        }
        Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
    }

    @Test
    void connectionsOverTheLimitAreClosedAndTheOthersServed() throws IOException {
        server = new TestServer(store, HttpOptions.onFreePort().withLimits(1 << 20, 10));
        for (int i = 0; i < 10; i++) {
            assertThat(connect().ask(get("/v0/status")).status()).isEqualTo(200);
        }
        RawClient eleventh = connect();
        assertThat(eleventh.isClosedByServer()).isTrue();
        clients.getFirst().close();
        Eventually.holds(() -> server.server.connections().size() == 9);
        assertThat(connect().ask(get("/v0/status")).status()).isEqualTo(200);
        assertThat(clients.get(5).ask(get("/v0/status")).status()).isEqualTo(200);
    }

    @Test
    void connectionsAreSpreadEvenlyOverSelectors() throws IOException {
        HttpOptions threeSelectors = HttpOptions.onFreePort()
                .withSelectors(3)
                .withTimeouts(LONG_MILLIS, LONG_MILLIS)
                .withAnswerTimeout(LONG_MILLIS);
        server = new TestServer(store, threeSelectors);
        for (int i = 0; i < 12; i++) {
            connect().ask(get("/v0/status"));
        }
        for (int selector = 0; selector < 3; selector++) {
            assertThat(server.server.connections().heldBy(selector)).isEqualTo(4);
        }
    }
}
