package kv.http;

import static kv.http.RawClient.delete;
import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import kv.Eventually;
import kv.lsm.StoreMetrics;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// When a connection goes on, when it ends, and in which order its answers come.
class ConnectionTest {
    private TestServer server;
    private RawClient client;

    @BeforeEach
    void start() throws IOException {
        server = new TestServer(new MemoryStore());
        client = server.connect();
    }

    @AfterEach
    void stop() throws IOException {
        client.close();
        server.close();
    }

    /// Asking for metrics once a second made every answer of that moment milliseconds late: they were written
    /// by the selector.
    @Test
    void whoeverAsksForMetricsHoldsUpNobodyElse() throws IOException {
        CountDownLatch asked = new CountDownLatch(1);
        CountDownLatch mayAnswer = new CountDownLatch(1);
        MemoryStore slow = new MemoryStore() {
            @Override
            public StoreMetrics metrics() {
                asked.countDown();
                await(mayAnswer);
                return super.metrics();
            }
        };
        HttpOptions options = HttpOptions.onFreePort().withHandler(HttpOptions.HandlerKind.SELECTOR, 1, 1);
        try (TestServer other = new TestServer(slow, options);
                RawClient watcher = other.connect();
                RawClient user = other.connect()) {
            watcher.send(put("/v0/entity?id=a", "one") + get("/metrics") + get("/v0/entity?id=a"));
            await(asked);
            assertThat(user.ask(get("/v0/entity?id=a")).text()).isEqualTo("one");
            mayAnswer.countDown();
            assertThat(watcher.read().status()).isEqualTo(201);
            assertThat(watcher.read().text())
                    .contains("kv_http_requests_total{endpoint=\"entity\",method=\"put\",status=\"201\"} 1.0");
            assertThat(watcher.read().text()).isEqualTo("one");
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(1, TimeUnit.MINUTES)).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void pipelinedRequestsAreAnsweredInOrder(HttpOptions.HandlerKind kind) throws IOException {
        int requests = 1_000;
        StringBuilder pipeline = new StringBuilder();
        for (int i = 0; i < requests; i++) {
            pipeline.append(put("/v0/entity?id=k" + i % 7, "value " + i)).append(get("/v0/entity?id=k" + i % 7));
        }
        try (TestServer other = new TestServer(
                        new MemoryStore(), HttpOptions.onFreePort().withHandler(kind, 4, 16));
                RawClient connection = other.connect()) {
            Thread sender = Thread.startVirtualThread(() -> {
                try {
                    connection.send(pipeline.toString());
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
            for (int i = 0; i < requests; i++) {
                assertThat(connection.read().status()).isEqualTo(201);
                assertThat(connection.read().text()).isEqualTo("value " + i);
            }
            sender.join();
            assertThat(connection.ask(get("/v0/entity?id=never")).status())
                    .as("no answer was given twice")
                    .isEqualTo(404);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void pipelinedLargeAnswersToAClientThatReadsLateComeInOrder() throws IOException {
        String value = "x".repeat(300_000);
        client.ask(put("/v0/entity?id=large", value));
        client.ask(put("/v0/entity?id=small", "small"));
        int answers = 40; // more than the sockets on both sides take
        try (RawClient late = new RawClient(server.server.port(), 4_096)) {
            for (int i = 0; i < answers; i++) {
                late.send(get("/v0/entity?id=large") + get("/v0/entity?id=small"));
            }
            Eventually.holds(() -> server.server.budget().bytesTaken() > 0); // what no socket takes
            for (int i = 0; i < answers; i++) {
                assertThat(late.read().text()).isEqualTo(value);
                assertThat(late.read().text()).isEqualTo("small");
            }
            assertThat(late.ask(get("/v0/entity?id=never")).status()).isEqualTo(404);
        }
    }

    @Test
    void aRequestMayComeByteByByte() throws IOException {
        for (byte b : (put("/v0/entity?id=a", "one") + get("/v0/entity?id=a")).getBytes()) {
            client.send(new byte[] {b});
        }
        assertThat(client.read().status()).isEqualTo(201);
        assertThat(client.read().text()).isEqualTo("one");
    }

    @Test
    void anHttp11ConnectionGoesOnUnlessItIsAskedToClose() throws IOException {
        RawClient.Reply kept = client.ask(get("/v0/status"));
        assertThat(kept.headers()).doesNotContainKey("connection");
        RawClient.Reply closed = client.ask("GET /v0/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assertThat(closed.status()).isEqualTo(200);
        assertThat(closed.closes()).isTrue();
        assertThat(client.isClosedByServer()).isTrue();
    }

    @Test
    void anHttp10ConnectionEndsUnlessItIsAskedToGoOn() throws IOException {
        RawClient.Reply kept = client.ask("GET /v0/status HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
        assertThat(kept.headers()).containsEntry("connection", "keep-alive");
        assertThat(client.ask("GET /v0/status HTTP/1.0\r\n\r\n").closes()).isTrue();
        assertThat(client.isClosedByServer()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "Connection: close, keep-alive\r\n",
                "Connection: keep-alive, close\r\n",
                "Connection: close\r\nConnection: keep-alive\r\n"
            })
    void aConnectionIsClosedForWhoAsksForThatAndForTheContrary(String headers) throws IOException {
        for (String version : List.of("1.0", "1.1")) {
            try (RawClient contrary = server.connect()) {
                RawClient.Reply reply =
                        contrary.ask("GET /v0/status HTTP/" + version + "\r\nHost: x\r\n" + headers + "\r\n");
                assertThat(reply.closes()).as(version).isTrue();
                assertThat(contrary.isClosedByServer()).as(version).isTrue();
            }
        }
    }

    @Test
    void aClientThatEndsItsSideStillGetsItsAnswers() throws IOException {
        client.send(put("/v0/entity?id=a", "one") + get("/v0/entity?id=a")).endOfInput();
        assertThat(client.read().status()).isEqualTo(201);
        assertThat(client.read().text()).isEqualTo("one");
        assertThat(client.isClosedByServer()).isTrue();
    }

    @Test
    void aClientThatEndsItsSideStillGetsItsAnswersFromAWorker() throws IOException {
        MemoryStore slow = new MemoryStore();
        slow.beforeEach = () -> sleep(100);
        try (TestServer other = new TestServer(
                        slow, HttpOptions.onFreePort().withHandler(HttpOptions.HandlerKind.WORKERS, 2, 16));
                RawClient connection = other.connect()) {
            connection
                    .send(put("/v0/entity?id=a", "one") + get("/v0/entity?id=a"))
                    .endOfInput();
            assertThat(connection.read().status()).isEqualTo(201);
            assertThat(connection.read().text()).isEqualTo("one");
            assertThat(connection.isClosedByServer()).isTrue();
        }
    }

    @Test
    void emptyLinesBeforeARequestAreSkipped() throws IOException {
        assertThat(client.ask("\r\n\r\n" + get("/v0/status")).status()).isEqualTo(200);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "GARBAGE\r\n\r\n",
                "GET\r\n\r\n",
                "GET /v0/status\r\n\r\n",
                "GET  /v0/status HTTP/1.1\r\nHost: x\r\n\r\n",
                "GET /v0/status HTTP/1.1 \r\n\r\n",
                "GET /v0/status HTTP/1.x\r\n\r\n",
                "GET /v0/sta\u0001tus HTTP/1.1\r\nHost: x\r\n\r\n",
                "GET /v0/status#part HTTP/1.1\r\nHost: x\r\n\r\n",
                "G\u00e9T /v0/status HTTP/1.1\r\nHost: x\r\n\r\n",
                " GET /v0/status HTTP/1.1\r\nHost: x\r\n\r\n",
                "GET /v0/status HTTP/1.1\r\nHost: x\r\nNo colon\r\n\r\n",
                "GET /v0/status HTTP/1.1\r\nHost: x\r\n: no name\r\n\r\n",
                "GET /v0/status HTTP/1.1\r\nHost : space\r\n\r\n",
                "GET /v0/status HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
                "GET /v0/status HTTP/1.1\r\nHost: x\u0000\r\n\r\n",
                "GET /v0/status HTTP/1.1\r\nHost: x\ry\r\n\r\n",
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\nx",
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n",
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\nx",
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
                        + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                        + "Content-Length: 3\r\n\r\n0\r\n\r\n",
                "PUT /v0/entity?id=a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n",
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
            })
    void aMalformedRequestIs400AndEndsTheConnection(String request) throws IOException {
        RawClient.Reply reply = client.ask(request);
        assertThat(reply.status()).isEqualTo(400);
        assertThat(reply.closes()).isTrue();
        assertThat(client.isClosedByServer()).isTrue();
        assertThat(server.ask(get("/v0/entity?id=a")).status())
                .as("nothing was stored")
                .isEqualTo(404);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "Hosts: x\r\n",
                "Host: x\r\nHost: x\r\n",
                "Host: x\r\nhost: y\r\n",
                "Host: x y\r\n",
                "Host: x/y\r\n",
                "Host: u@x\r\n",
                "Host: x,y z\r\n",
                "Host: ::::\r\n",
                "Host: a:b:c\r\n",
                "Host: x:port\r\n",
                "Host: x:80:80\r\n",
                "Host: x:-1\r\n",
                "Host: ::1\r\n",
                "Host: ]a[\r\n",
                "Host: []\r\n",
                "Host: [::1\r\n",
                "Host: [::1]80\r\n",
                "Host: [::1]:p\r\n",
                "Host: [a]\r\n",
                "Host: a[::1]\r\n",
                "Host: a%\r\n",
                "Host: a%4\r\n",
                "Host: a%zz\r\n"
            })
    void withoutOneValidHostARequestIs400AndTheNextOneIsServed(String headers) throws IOException {
        for (String request : List.of(
                "GET /v0/status HTTP/1.1\r\n" + headers + "\r\n",
                "PATCH http://x/v0/status HTTP/1.1\r\n" + headers + "\r\n",
                "PUT /v0/entity?id=a HTTP/1.1\r\n" + headers + "Content-Length: 3\r\n\r\none",
                "PUT /v0/entity?id=a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + headers
                        + "\r\n3\r\none\r\n0\r\n\r\n")) {
            RawClient.Reply reply = client.ask(request);
            assertThat(reply.status()).as(request).isEqualTo(400);
            assertThat(reply.text()).as(request).contains("Host");
            assertThat(reply.closes()).isFalse();
            assertThat(client.ask(get("/v0/entity?id=a")).status())
                    .as("nothing was stored")
                    .isEqualTo(404);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "1.1\r\nHost: x\r\n",
                "1.1\r\nHost: 127.0.0.1:80\r\n",
                "1.1\r\nHost: x:\r\n",
                "1.1\r\nHost: [v1.a:b]\r\n",
                "1.1\r\nHost: [::ffff:1.2.3.4]\r\n",
                "1.1\r\nHOST:\t[::1]:8080 \r\n",
                "1.1\r\nhost:\r\n",
                "1.1\nHost: a.b%20c\n",
                "1.0\r\n",
                "1.0\r\nHost: x\r\n"
            })
    void oneHostIsEnoughAndHttp10NeedsNone(String versionAndHost) throws IOException {
        assertThat(server.ask("GET /v0/status HTTP/" + versionAndHost + "\r\n").status())
                .isEqualTo(200);
    }

    @Test
    void whatFollowsAMalformedRequestIsNotServed() throws IOException {
        client.send("GARBAGE\r\n\r\n" + put("/v0/entity?id=a", "one"));
        assertThat(client.read().status()).isEqualTo(400);
        assertThat(client.isClosedByServer()).isTrue();
        assertThat(server.ask(get("/v0/entity?id=a")).status()).isEqualTo(404);
    }

    @Test
    void equalRepeatedLengthsAreOneLength() throws IOException {
        assertThat(client.ask("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
                                + "content-length:3 \r\n\r\none")
                        .status())
                .isEqualTo(201);
    }

    @Test
    void anotherMajorVersionIs505() throws IOException {
        assertThat(client.ask("GET /v0/status HTTP/2.0\r\n\r\n").status()).isEqualTo(505);
    }

    @Test
    void anUnknownTransferEncodingIs501() throws IOException {
        assertThat(client.ask("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\n"
                                + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")
                        .status())
                .isEqualTo(501);
    }

    @Test
    void aHeadOverItsLimitIs431() throws IOException {
        String line = "X: " + "y".repeat(1_000) + "\r\n";
        assertThat(client.ask("GET /v0/status HTTP/1.1\r\nHost: x\r\n" + line.repeat(12) + "\r\n")
                        .status())
                .isEqualTo(200);
        assertThat(client.ask("GET /v0/status HTTP/1.1\r\nHost: x\r\n" + line.repeat(20))
                        .status())
                .isEqualTo(431);
        RawClient.Reply whole = server.ask("GET /v0/status HTTP/1.1\r\nHost: x\r\n" + line.repeat(20) + "\r\n");
        assertThat(whole.status()).as("with its end").isEqualTo(431);
        assertThat(whole.closes()).isTrue();
        assertThat(server.ask("GET /v0/status HTTP/1.1\r\nHost: x\r\n" + "a: b\r\n".repeat(99) + "\r\n")
                        .status())
                .as("a hundred headers")
                .isEqualTo(200);
        assertThat(server.ask("GET /v0/status HTTP/1.1\r\nHost: x\r\n" + "a: b\r\n".repeat(100) + "\r\n")
                        .status())
                .isEqualTo(431);
        assertThat(server.ask("GET /v0/entity?id=" + "k".repeat(20_000)).status())
                .isEqualTo(414);
    }

    @Test
    void theBodyOfARequestThatNeedsNoneIsSkipped() throws IOException {
        client.ask(put("/v0/entity?id=a", "one"));
        String body = get("/v0/entity?id=smuggled");
        assertThat(client.ask("GET /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: " + body.length() + "\r\n\r\n"
                                + body)
                        .text())
                .isEqualTo("one");
        assertThat(client.ask("DELETE /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                                + "\r\n3\r\nabc\r\n0\r\n\r\n")
                        .status())
                .isEqualTo(202);
        assertThat(client.ask(delete("/v0/entity?id=a")).status()).isEqualTo(202);
    }

    static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
