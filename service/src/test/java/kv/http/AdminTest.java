package kv.http;

import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import kv.Eventually;
import kv.cache.CachedStore;
import kv.lsm.CompactionPolicyKind;
import kv.lsm.LsmStore;
import kv.lsm.Store;
import kv.lsm.StoreOptions;
import kv.lsm.WalMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Requests of an operator, over raw sockets and with the real store.
class AdminTest {
    private static final HttpOptions ADMIN =
            HttpOptions.onFreePort().withSelectors(1).withOperations(new Operations(true, 10_000));

    @TempDir
    private Path directory;

    private static String post(String target) {
        return "POST " + target + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    }

    private static int status(RawClient client, String request) {
        try {
            return client.ask(request).status();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private StoreOptions options() {
        return StoreOptions.at(directory.resolve("store")).toBuilder()
                .wal(WalMode.OS)
                .memtableBytes(64 << 10)
                .level0(2, 100, 200)
                .build();
    }

    private TestServer start(StoreOptions options) throws IOException {
        return new TestServer(LsmStore.open(options), ADMIN);
    }

    /// Where there is room again a full compaction is not: compactions that writers wait for go first.
    @Test
    void whoseCompactionOfAllTablesFailedIsToldToAskAgain() throws IOException {
        StoreOptions uncompacted =
                options().toBuilder().compaction(CompactionPolicyKind.NONE).build();
        try (TestServer server = start(uncompacted);
                RawClient client = server.connect()) {
            for (String key : List.of("a", "b")) {
                client.ask(put("/v0/entity?id=" + key, "one"));
                assertThat(client.ask(post("/v0/admin/flush")).status()).isEqualTo(200);
            }
            for (int number = 0; number < 100; number++) {
                Files.createDirectory(directory.resolve("store/%06d.table.tmp".formatted(number)));
            }
            RawClient.Reply failed = client.ask(post("/v0/admin/compact"));
            assertThat(failed.status()).isEqualTo(503);
            assertThat(failed.text()).contains("ask again").doesNotContain("is tried again");
            for (int number = 0; number < 100; number++) {
                Files.deleteIfExists(directory.resolve("store/%06d.table.tmp".formatted(number)));
            }
            Eventually.holds(() -> status(client, post("/v0/admin/compact")) == 200);
        }
    }

    @Test
    void withoutTheOptionEveryAdminRequestIs403WithTheReason() throws IOException {
        try (TestServer server = new TestServer(new MemoryStore());
                RawClient client = server.connect()) {
            for (String what : List.of("flush", "compact", "checkpoint?dir=/tmp/x", "idle", "nonsense")) {
                RawClient.Reply reply = client.ask(post("/v0/admin/" + what));
                assertThat(reply.status()).as(what).isEqualTo(403);
                assertThat(reply.text()).isEqualTo("admin requests are off: start the service with --admin\n");
                assertThat(reply.closes()).isFalse();
            }
        }
    }

    @Test
    void flushAndCompactLeaveOneTableAndTheValues() throws IOException {
        try (TestServer server = start(options());
                RawClient client = server.connect()) {
            for (int i = 0; i < 50; i++) {
                client.ask(put("/v0/entity?id=" + i, "value" + i));
                if (i % 10 == 0) {
                    RawClient.Reply flushed = client.ask(post("/v0/admin/flush"));
                    assertThat(flushed.status()).isEqualTo(200);
                    assertThat(flushed.text()).matches("done: request=flush, seconds=\\d+\\.\\d{3}\n");
                }
                if (i == 0) {
                    assertThat(client.ask(get("/metrics?prefix=kv_store_level")).text())
                            .as("behind the first flush")
                            .contains("kv_store_level_tables{level=\"0\"} 1.0");
                }
            }
            assertThat(client.ask(post("/v0/admin/compact")).status()).isEqualTo(200);
            assertThat(client.ask(post("/v0/admin/idle")).status()).isEqualTo(200);
            assertThat(client.ask(get("/metrics?prefix=kv_store_level")).text())
                    .contains("kv_store_level_tables{level=\"1\"} 1.0")
                    .doesNotContain("{level=\"0\"}");
            for (int i = 0; i < 50; i++) {
                assertThat(client.ask(get("/v0/entity?id=" + i)).text()).isEqualTo("value" + i);
            }
        }
    }

    @Test
    void aCheckpointOfARunningServiceOpensAsAStore() throws IOException {
        Path checkpoint = directory.resolve("check point");
        String encoded = checkpoint.toString().replace(" ", "%20");
        try (TestServer server = new TestServer(new CachedStore(LsmStore.open(options()), 10), ADMIN);
                RawClient client = server.connect()) {
            client.ask(put("/v0/entity?id=a", "one"));
            assertThat(client.ask(post("/v0/admin/checkpoint?dir=" + encoded)).status())
                    .isEqualTo(200);
            client.ask(put("/v0/entity?id=a", "two"));
            assertThat(client.ask(post("/v0/admin/checkpoint?dir=" + encoded)).status())
                    .isEqualTo(409);
            assertThat(client.ask(post("/v0/admin/checkpoint?dir=" + directory.resolve("no/such")))
                            .status())
                    .isEqualTo(400);
            assertThat(client.ask(post("/v0/admin/checkpoint?dir=relative")).status())
                    .isEqualTo(400);
            assertThat(client.ask(post("/v0/admin/checkpoint")).text()).contains("dir");
            assertThat(client.ask(get("/v0/entity?id=a")).text()).isEqualTo("two");
        }
        try (Store copy = LsmStore.open(StoreOptions.at(checkpoint))) {
            assertThat(copy.get("a".getBytes())).isEqualTo("one".getBytes());
        }
        assertThat(directory.resolve("no")).doesNotExist();
        assertThat(Files.exists(checkpoint.resolve("MANIFEST"))).isTrue();
    }

    @Test
    void anAdminRequestThatWaitsHoldsNobodyUpAndEndsWithTheService() throws Exception {
        StoreOptions slow =
                options().toBuilder().compactionBytesPerSecond(1 << 10).build();
        RawClient waiting;
        try (TestServer server = start(slow);
                RawClient client = server.connect()) {
            waiting = server.connect();
            for (int i = 0; i < 3; i++) {
                client.ask(put("/v0/entity?id=" + i, "x".repeat(20_000)));
                client.ask(post("/v0/admin/flush"));
            }
            waiting.send(post("/v0/admin/compact"));
            assertThat(client.ask(post("/v0/admin/idle?timeout-ms=10")).status())
                    .isEqualTo(503);
            for (int i = 0; i < 20; i++) {
                assertThat(client.ask(get("/v0/status")).status()).isEqualTo(200);
                assertThat(client.ask(get("/v0/entity?id=1")).body()).hasSize(20_000);
            }
        }
        assertThat(waiting.read().status()).as("the service stopped first").isEqualTo(503);
        waiting.close();
    }

    @Test
    void wrongMethodsPathsAndNumbersAreRefused() throws IOException {
        try (TestServer server = start(options());
                RawClient client = server.connect()) {
            RawClient.Reply got = client.ask(get("/v0/admin/flush"));
            assertThat(got.status()).isEqualTo(405);
            assertThat(got.headers()).containsEntry("allow", "POST");
            assertThat(client.ask(post("/v0/admin/nonsense")).status()).isEqualTo(404);
            assertThat(client.ask(post("/v0/admin/")).status()).isEqualTo(400);
            assertThat(client.ask(post("/v0/admin")).status()).isEqualTo(400);
            for (String wrong : List.of("", "-1", "x", "1x", "1234567890")) {
                assertThat(client.ask(post("/v0/admin/idle?timeout-ms=" + wrong))
                                .status())
                        .as(wrong)
                        .isEqualTo(400);
            }
            for (String wrong : List.of("/tmp/%FF", "/tmp/%00", "/tmp/" + "a".repeat(900), "relative", "")) {
                assertThat(client.ask(post("/v0/admin/checkpoint?dir=" + wrong)).status())
                        .as(wrong)
                        .isEqualTo(400);
            }
            assertThat(client.ask(post("/v0/status")).status()).isEqualTo(405);
        }
    }

    @Test
    void readinessFollowsTheStoreAndLivenessDoesNot() throws IOException {
        KvServer starting = KvServer.bind(HttpOptions.onFreePort());
        MemoryStore store = new MemoryStore();
        try (RawClient client = new RawClient(starting.port())) {
            assertThat(client.ask(get("/v0/ready")).status()).isEqualTo(503);
            assertThat(client.ask(get("/v0/live")).status()).isEqualTo(200);
            starting.serve(store);
            assertThat(client.ask(get("/v0/ready")).status()).isEqualTo(200);
            assertThat(client.ask(get("/v0/status")).status()).isEqualTo(200);
            store.close(); // it takes no more writes
            assertThat(client.ask(get("/v0/ready")).status()).isEqualTo(503);
            assertThat(client.ask(get("/v0/status")).status()).isEqualTo(503);
            assertThat(client.ask(get("/v0/live")).status()).isEqualTo(200);
        } finally {
            starting.stopInOrder();
        }
    }
}
