package kv.http;

import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.Random;
import kv.Eventually;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Bodies by length and in chunks, too large, asked about first, and refused.
class RequestBodyTest {
    private static final int VALUE_BYTES_MAX = 200_000;
    private TestServer server;
    private RawClient client;

    @BeforeEach
    void start() throws IOException {
        server = new TestServer(new MemoryStore(), HttpOptions.onFreePort().withLimits(VALUE_BYTES_MAX, 100));
        client = server.connect();
    }

    @AfterEach
    void stop() throws IOException {
        client.close();
        Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
        server.close();
    }

    private static byte[] random(int length, long seed) {
        byte[] bytes = new byte[length];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    private static String chunked(String target, String... chunks) {
        StringBuilder request =
                new StringBuilder("PUT " + target + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (String chunk : chunks) {
            request.append(Integer.toHexString(chunk.length()))
                    .append("\r\n")
                    .append(chunk)
                    .append("\r\n");
        }
        return request + "0\r\n\r\n";
    }

    @Test
    void valuesOfManySizesComeBackByteForByte() throws IOException {
        for (int length : new int[] {
            0,
            1,
            9,
            10,
            99,
            100,
            8_191,
            8_192,
            16_384,
            16_385,
            63_900,
            64_000,
            64_001,
            65_536,
            65_537,
            131_073,
            VALUE_BYTES_MAX
        }) {
            byte[] value = random(length, length);
            client.send("PUT /v0/entity?id=n HTTP/1.1\r\nHost: x\r\nContent-Length: " + length + "\r\n\r\n")
                    .send(value);
            assertThat(client.read().status()).as("PUT of " + length).isEqualTo(201);
            assertThat(client.ask(get("/v0/entity?id=n")).body())
                    .as("GET of " + length)
                    .isEqualTo(value);
        }
    }

    @Test
    void aChunkedBodyIsTheValueAndTheNextRequestIsTheNextRequest() throws IOException {
        client.send(chunked("/v0/entity?id=a", "he", "l", "lo") + get("/v0/entity?id=a"));
        assertThat(client.read().status()).isEqualTo(201);
        assertThat(client.read().text()).isEqualTo("hello");
    }

    @Test
    void aLargeChunkedBodyComesBackByteForByte() throws IOException {
        String chunk = "0123456789".repeat(999);
        assertThat(client.ask(chunked("/v0/entity?id=a", chunk, chunk, chunk, chunk, chunk, chunk, chunk, chunk, "x"))
                        .status())
                .isEqualTo(201);
        assertThat(client.ask(get("/v0/entity?id=a")).text()).isEqualTo(chunk.repeat(8) + "x");
    }

    @Test
    void chunkExtensionsAndTrailersAreIgnored() throws IOException {
        client.send("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
                + "3;name=\"v\"\r\nhel\r\n1 \t;b\r\nl\r\n1 \r\no\r\n0;last\r\n"
                + "X-Trailer:\t1\r\nContent-Length: 7\r\n\r\n"
                + get("/v0/entity?id=a"));
        assertThat(client.read().status()).isEqualTo(201);
        assertThat(client.read().text()).isEqualTo("hello");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "5\nhello\r\n0\r\n\r\n",
                "5;a\nhello\r\n0\r\n\r\n",
                "5\r\nhello\n0\r\n\r\n",
                "5\r\nhello\r\n0\n\r\n",
                "5\r\nhello\r\n0\r\n\n",
                "5\r\nhello\r\n0\r\na: b\n\r\n",
                "5\r\nhello\r\n0\r\na: b\r\n\n",
                "5\r\nhello\r\n0;\n\r\n",
                "5\r\nhello\r\n0\r\na: \rb\r\n\r\n"
            })
    void aLineOfTheFramingThatDoesNotEndInCrLfIs400AndEndsTheConnection(String body) throws IOException {
        isRefused(body);
    }

    /// Who takes it for a part of the size, or for the next request, sees others than we do.
    @ParameterizedTest
    @ValueSource(
            strings = {
                "5 0\r\nhello\r\n0\r\n\r\n",
                "5\t x\r\nhello\r\n0\r\n\r\n",
                "5 hello\r\n0\r\n\r\n",
                "5;a\u0000\r\nhello\r\n0\r\n\r\n",
                "5\r\nhello\r\n0 GET\r\n\r\n",
                "5\r\nhello\r\n0\r\nGET /v0/status HTTP/1.1\r\n\r\n",
                "5\r\nhello\r\n0\r\n: b\r\n\r\n",
                "5\r\nhello\r\n0\r\na : b\r\n\r\n",
                "5\r\nhello\r\n0\r\n b\r\n\r\n",
                "5\r\nhello\r\n0\r\na: \u0001\r\n\r\n"
            })
    void garbageBehindAChunkSizeAndTrailersThatAreNoHeadersAre400AndEndTheConnection(String body) throws IOException {
        isRefused(body);
    }

    private void isRefused(String body) throws IOException {
        client.send("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body);
        assertThat(client.read().status()).isEqualTo(400);
        assertThat(client.isClosedByServer()).isTrue();
        assertThat(server.ask(get("/v0/entity?id=a")).status())
                .as("nothing was stored")
                .isEqualTo(404);
    }

    /// The client would take a second one for the answer to its next request.
    @ParameterizedTest
    @ValueSource(strings = {"POST /v0/entity?id=a", "PUT /nowhere", "PUT /v0/entity?id=", "PUT /v0/entity?id=large"})
    void aRefusedRequestWhoseBodyIsMalformedGetsNoSecondAnswer(String request) throws IOException {
        String whole = Integer.toHexString(VALUE_BYTES_MAX + 1) + "\r\n" + "v".repeat(VALUE_BYTES_MAX + 1) + "\r\n";
        client.send(request + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + whole);
        assertThat(client.read().status()).isIn(400, 405, 413);
        client.send("no size\r\n\r\n");
        assertThat(client.isClosedByServer()).isTrue();
    }

    @Test
    void endlessTrailersEndTheConnection() throws IOException {
        client.send("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
                + "a: b\r\n".repeat(5_000));
        assertThat(client.read().status()).isEqualTo(400);
        assertThat(client.isClosedByServer()).isTrue();
    }

    @Test
    void aValueOverTheLimitIs413AndTheConnectionSurvives() throws IOException {
        RawClient.Reply reply = client.ask(put("/v0/entity?id=a", "x".repeat(VALUE_BYTES_MAX + 1)));
        assertThat(reply.status()).isEqualTo(413);
        assertThat(reply.closes()).isFalse();
        assertThat(client.ask(get("/v0/entity?id=a")).status()).isEqualTo(404);
        assertThat(client.ask(put("/v0/entity?id=a", "small")).status()).isEqualTo(201);
    }

    @Test
    void aChunkedValueOverTheLimitIs413AndTheConnectionSurvives() throws IOException {
        RawClient.Reply reply =
                client.ask(chunked("/v0/entity?id=a", "x".repeat(VALUE_BYTES_MAX), "y", "z".repeat(100_000)));
        assertThat(reply.status()).isEqualTo(413);
        assertThat(client.ask(get("/v0/entity?id=a")).status()).isEqualTo(404);
        assertThat(client.ask(chunked("/v0/entity?id=a", "small")).status()).isEqualTo(201);
    }

    @Test
    void aBodyTooLongToSkipIs413AndEndsTheConnection() throws IOException {
        RawClient.Reply reply =
                client.ask("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 17000000000\r\n\r\nxxx");
        assertThat(reply.status()).isEqualTo(413);
        assertThat(reply.closes()).isTrue();
        assertThat(client.isClosedByServer()).isTrue();
    }

    @Test
    void expectContinueIsAnsweredBeforeTheBodyIsSent() throws IOException {
        client.send("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\n");
        assertThat(client.read().status()).isEqualTo(100);
        assertThat(client.ask("hello").status()).isEqualTo(201);
        client.send("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                + "Expect: 100-continue\r\n\r\n");
        assertThat(client.read().status()).isEqualTo(100);
        assertThat(client.ask("3\r\nbye\r\n0\r\n\r\n").status()).isEqualTo(201);
        assertThat(client.ask(get("/v0/entity?id=a")).text()).isEqualTo("bye");
    }

    /// From the second on, what is behind the target is known from the one before.
    @Test
    void expectContinueIsAnsweredAgainWhenItIsAskedAgain() throws IOException {
        for (int i = 0; i < 4; i++) {
            client.send("PUT /v0/entity?id=a" + i
                    + " HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
            assertThat(client.read().status()).as("request " + i).isEqualTo(100);
            assertThat(client.ask("hello").status()).isEqualTo(201);
        }
    }

    @Test
    void aBodySentAtOnceNeedsNoContinue() throws IOException {
        client.send(
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello");
        assertThat(client.read().status()).isEqualTo(201);
    }

    @Test
    void aRefusedExpectationEndsTheConnectionBecauseTheBodyMayOrMayNotCome() throws IOException {
        RawClient.Reply reply = client.ask(
                "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\nExpect: 100-continue\r\n\r\n");
        assertThat(reply.status()).isEqualTo(413);
        assertThat(reply.closes()).isTrue();
        assertThat(client.isClosedByServer()).isTrue();
    }

    @Test
    void anUnknownExpectationIs417() throws IOException {
        assertThat(client.ask("GET /v0/status HTTP/1.1\r\nHost: x\r\nExpect: the-unexpected\r\n\r\n")
                        .status())
                .isEqualTo(417);
        assertThat(client.ask(get("/v0/status")).status()).isEqualTo(200);
    }

    @Test
    void theBodyOfARefusedRequestIsNotTheNextRequest() throws IOException {
        String body = put("/v0/entity?id=smuggled", "x");
        client.send("POST /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: " + body.length() + "\r\n\r\n" + body);
        assertThat(client.read().status()).isEqualTo(405);
        assertThat(client.ask(put("/v0/entity?id=", body)).status()).isEqualTo(400);
        assertThat(client.ask(put("/nowhere", body)).status()).isEqualTo(400);
        assertThat(client.ask(get("/v0/entity?id=smuggled")).status()).isEqualTo(404);
    }

    @Test
    void aClientThatDiesInABodyStoresNothing() throws IOException {
        try (RawClient dying = server.connect()) {
            dying.send("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
                    .send(random(90_000, 1));
        }
        assertThat(client.ask(get("/v0/entity?id=a")).status()).isEqualTo(404);
        Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
    }
}
