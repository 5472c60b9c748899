package kv.http;

import static kv.http.RawClient.get;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import kv.cache.CachedStore;
import kv.lsm.LsmStore;
import kv.lsm.Store;
import kv.lsm.StoreOptions;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Requests of many keys, and ranges with a limit, over raw sockets and with the real store behind a cache.
class BatchTest {
    @TempDir
    private Path directory;

    private TestServer server;
    private RawClient client;

    @BeforeEach
    void start() throws IOException {
        HttpOptions options =
                HttpOptions.onFreePort().withLimits(1_000, 100).withOperations(new Operations(false, 1_000, 4_000));
        server = new TestServer(
                new CachedStore(LsmStore.open(StoreOptions.at(directory.resolve("store"))), 100), options);
        client = server.connect();
    }

    @AfterEach
    void stop() throws IOException {
        client.close();
        server.close();
    }

    private RawClient.Reply post(String what, String body) throws IOException {
        return client.ask("POST /v0/entities/" + what + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + body.length()
                + "\r\n\r\n" + body);
    }

    @Test
    void aBatchIsWrittenAndReadBackInTheOrderOfTheRequest() throws IOException {
        client.ask(RawClient.put("/v0/entity?id=b", "old"));
        client.ask(get("/v0/entity?id=b")); // now in the cache
        RawClient.Reply written =
                post("batch", "put 1 3\naone\nput 2 0\nx\n\ndelete 1\nb\nput 1 4\nctw\no\nput 1 5\nathree\n");
        assertThat(written.status()).isEqualTo(200);
        assertThat(written.text()).isEqualTo("5\n");
        RawClient.Reply read = post("get", "1\na\n1\nb\n2\nx\n\n1\nc\n1\nz\n");
        assertThat(read.status()).isEqualTo(200);
        assertThat(read.text()).isEqualTo("5\nthree\n-1\n0\n\n4\ntw\no\n-1\n");
        assertThat(client.ask(get("/v0/entity?id=b")).status()).isEqualTo(404);
        assertThat(post("get", "").text()).isEmpty();
        assertThat(post("batch", "").text()).isEqualTo("0\n");
    }

    @Test
    void aMalformedBatchIs400AndWritesNothing() throws IOException {
        for (String body : new String[] {
            "x",
            "put",
            "put 1 1\nab",
            "put 1 1\nabc\n",
            "put 1\na\n",
            "put  1 1\nab\n",
            "put 0 1\nb\n",
            "put -1 1\nab\n",
            "put 1 9999999999\nab\n",
            "put 1 99\nab\n",
            "delete 1\na",
            "delete 1 1\nab\n",
            "PUT 1 1\nab\n",
            "delete\n"
        }) {
            RawClient.Reply reply = post("batch", "put 1 1\nkv\n" + body);
            assertThat(reply.status()).as(body).isEqualTo(400);
            assertThat(reply.closes()).isFalse();
        }
        for (String body : new String[] {"a", "1", "1\n", "1\na", "2\na\n", "0\n\n", "-1\na\n"}) {
            assertThat(post("get", body).status()).as(body).isEqualTo(400);
        }
        assertThat(post("get", "a").text()).contains("service/docs/http.md");
        assertThat(Path.of("docs/http.md")).content().contains("KEYBYTES");
        assertThat(client.ask(get("/v0/entity?id=k")).status()).isEqualTo(404);
    }

    @Test
    void limitsAre413Or414() throws IOException {
        assertThat(post("batch", "put 1 1001\na" + "v".repeat(1_001) + "\n").status())
                .isEqualTo(413);
        assertThat(post("batch", "x".repeat(4_001)).text()).contains("--max-batch-bytes");
        assertThat(post("get", "1025\n" + "k".repeat(1_025) + "\n").status()).isEqualTo(414);
        assertThat(client.ask(get("/v0/entity?id=a")).status())
                .as("nothing was written")
                .isEqualTo(404);
        // as much as is allowed
        assertThat(post("batch", "put 1 1000\na" + "v".repeat(1_000) + "\n").text())
                .isEqualTo("1\n");
        assertThat(post("batch", "x".repeat(4_000)).status())
                .as("malformed, and not too large")
                .isEqualTo(400);
        assertThat(post("get", "1024\n" + "k".repeat(1_024) + "\n").text()).isEqualTo("-1\n");
        for (int i = 0; i < 5; i++) {
            client.ask(RawClient.put("/v0/entity?id=" + i, "v".repeat(1_000)));
        }
        assertThat(post("get", "1\n0\n1\n1\n1\n2\n1\n3\n").status())
                .as("4 000 bytes of values, and what tells them apart")
                .isEqualTo(200);
        assertThat(post("get", "1\n0\n1\n1\n1\n2\n1\n3\n1\n4\n").status()).isEqualTo(413);
        RawClient.Reply got = client.ask(get("/v0/entities/batch"));
        assertThat(got.status()).isEqualTo(405);
        assertThat(got.headers()).containsEntry("allow", "POST");
    }

    /// Without that the heap is exhausted where --max-batch-bytes is a large part of it, and the thread that is told
    /// may be anybody's.
    @Test
    void anAnswerThatTheMemoryForRequestsHasNoRoomForIs503AndGivesAllBack() {
        Store store = new MemoryStore();
        store.put(new byte[] {'a'}, new byte[1_000]);
        MemoryBudget budget = new MemoryBudget(20_000);
        MemoryBudget.Share ofOthers = budget.account().share();
        assertThat(ofOthers.growTo(10_000)).isTrue();
        assertThat(statusOfGet(store, budget, 4)).isEqualTo(200);
        assertThat(statusOfGet(store, budget, 6)).isEqualTo(503);
        assertThat(budget.bytesTaken()).isEqualTo(10_000);
        ofOthers.giveBack();
        assertThat(statusOfGet(store, budget, 6)).isEqualTo(200);
        assertThat(statusOfGet(store, budget, 12))
                .as("never, so nobody is to try again")
                .isEqualTo(413);
        assertThat(budget.bytesTaken()).isZero();
    }

    private static int statusOfGet(Store store, MemoryBudget budget, int values) {
        Request request = new Request(budget.account());
        request.clear();
        request.value = "1\na\n".repeat(values).getBytes(StandardCharsets.US_ASCII);
        Output out = new Output(512);
        new BatchEndpoint(HttpOptions.onFreePort()).get(store, request, out);
        return out.status();
    }

    @Test
    void aRangeEndsAtItsLimit() throws IOException {
        post("batch", "put 1 1\na1\nput 1 1\nb2\nput 1 1\nc3\n");
        assertThat(client.ask(get("/v0/entities?start=a&limit=2")).text()).isEqualTo("a\n1b\n2");
        assertThat(client.ask(get("/v0/entities?start=a&limit=0")).text()).isEmpty();
        assertThat(client.ask(get("/v0/entities?start=b&end=c&limit=9")).text()).isEqualTo("b\n2");
        for (String wrong : new String[] {"", "-1", "x", "1234567890"}) {
            assertThat(client.ask(get("/v0/entities?start=a&limit=" + wrong)).status())
                    .as(wrong)
                    .isEqualTo(400);
        }
    }
}
