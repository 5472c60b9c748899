package kv.http;

import static kv.http.RawClient.delete;
import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Every row of the HTTP contract, over raw sockets.
class HttpContractTest {
    private final MemoryStore store = new MemoryStore();
    private TestServer server;
    private RawClient client;

    @BeforeEach
    void start() throws IOException {
        server = new TestServer(store);
        client = server.connect();
    }

    @AfterEach
    void stop() throws IOException {
        client.close();
        server.close();
    }

    private int status(String request) throws IOException {
        return client.ask(request).status();
    }

    @Test
    void putThenGetGivesTheValueBack() throws IOException {
        RawClient.Reply created = client.ask(put("/v0/entity?id=a", "one"));
        assertThat(created.status()).isEqualTo(201);
        assertThat(created.body()).isEmpty();
        RawClient.Reply found = client.ask(get("/v0/entity?id=a"));
        assertThat(found.status()).isEqualTo(200);
        assertThat(found.text()).isEqualTo("one");
    }

    @Test
    void anEmptyValueIsAValue() throws IOException {
        assertThat(status(put("/v0/entity?id=a", ""))).isEqualTo(201);
        RawClient.Reply found = client.ask(get("/v0/entity?id=a"));
        assertThat(found.status()).isEqualTo(200);
        assertThat(found.body()).isEmpty();
        assertThat(found.headers()).containsEntry("content-length", "0");
    }

    @Test
    void aPutWithoutAnyLengthStoresAnEmptyValue() throws IOException {
        assertThat(status("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\n\r\n")).isEqualTo(201);
        assertThat(client.ask(get("/v0/entity?id=a")).body()).isEmpty();
    }

    /// RFC 9110, 4.2.3: a scheme is the same in capitals.
    @Test
    void aTargetMayNameSchemeAndHost() throws IOException {
        for (String scheme : new String[] {"http", "HTTP", "Http"}) {
            assertThat(status(put(scheme + "://x:80/v0/entity?id=a", scheme))).isEqualTo(201);
            assertThat(client.ask(get("/v0/entity?id=a")).text()).isEqualTo(scheme);
        }
        assertThat(status(get("https://x/v0/entity?id=a"))).isEqualTo(400);
    }

    @Test
    void anAbsentKeyIs404AndSoIsADeletedOne() throws IOException {
        assertThat(status(get("/v0/entity?id=a"))).isEqualTo(404);
        client.ask(put("/v0/entity?id=a", "one"));
        assertThat(status(delete("/v0/entity?id=a"))).isEqualTo(202);
        assertThat(status(get("/v0/entity?id=a"))).isEqualTo(404);
    }

    @Test
    void deletingAnAbsentKeyIs202() throws IOException {
        assertThat(status(delete("/v0/entity?id=never"))).isEqualTo(202);
    }

    @Test
    void aMissingOrEmptyIdIs400() throws IOException {
        for (String target : new String[] {
            "/v0/entity",
            "/v0/entity?",
            "/v0/entity?id",
            "/v0/entity?id=",
            "/v0/entity?id=&x=1",
            "/v0/entity?ID=a",
            "/v0/entity?xid=a"
        }) {
            assertThat(status(get(target))).as("GET " + target).isEqualTo(400);
            assertThat(status(put(target, "v"))).as("PUT " + target).isEqualTo(400);
            assertThat(status(delete(target))).as("DELETE " + target).isEqualTo(400);
        }
    }

    @Test
    void anyOtherMethodOnAnEntityIs405() throws IOException {
        for (String method : new String[] {"POST", "OPTIONS", "PATCH", "TRACE", "CONNECT", "BREW"}) {
            RawClient.Reply reply =
                    client.ask(method + " /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
            assertThat(reply.status()).as(method).isEqualTo(405);
            assertThat(reply.headers()).containsEntry("allow", "GET, PUT, DELETE");
        }
        client.send("HEAD /v0/entity?id=a HTTP/1.1\r\nHost: x\r\n\r\n");
        assertThat(client.readHead().status()).isEqualTo(405);
        assertThat(status(get("/v0/entity?id=a"))).isEqualTo(404);
    }

    @Test
    void anyOtherPathIs400() throws IOException {
        for (String target : new String[] {
            "/", "/v0", "/v0/entity/", "/v0/entit", "/v1/entity?id=a", "/v0/entity2?id=a", "*", "//v0/entity?id=a"
        }) {
            assertThat(status(get(target))).as(target).isEqualTo(400);
        }
    }

    @Test
    void theAbsoluteFormOfATargetIsUnderstood() throws IOException {
        assertThat(status(put("http://any.host:80/v0/entity?id=a", "one"))).isEqualTo(201);
        assertThat(client.ask(get("/v0/entity?id=a")).text()).isEqualTo("one");
    }

    @Test
    void theFirstOfRepeatedParametersCountsWhereverItStands() throws IOException {
        assertThat(status(put("/v0/entity?x=1&id=a&id=b&y", "one"))).isEqualTo(201);
        assertThat(status(get("/v0/entity?id=a"))).isEqualTo(200);
        assertThat(status(get("/v0/entity?id=b"))).isEqualTo(404);
    }

    @Test
    void aKeyOf1024DecodedBytesIsTheLongest() throws IOException {
        String longest = "%e2%82%ac".repeat(341) + "x";
        assertThat(status(put("/v0/entity?id=" + longest, "one"))).isEqualTo(201);
        assertThat(client.ask(get("/v0/entity?id=" + longest)).text()).isEqualTo("one");
        RawClient.Reply tooLong = client.ask(put("/v0/entity?id=" + longest + "x", "one"));
        assertThat(tooLong.status()).isEqualTo(414);
        assertThat(tooLong.closes()).isFalse();
        assertThat(status(get("/v0/entities?start=" + longest + "x"))).isEqualTo(414);
        assertThat(status(get("/v0/entities?start=a&end=" + longest + "x"))).isEqualTo(414);
    }

    @Test
    void aMalformedEscapeIs400AndTheConnectionSurvives() throws IOException {
        for (String id : new String[] {"%", "a%", "%2", "%2x", "%x2", "a%%41", "%-1", "%+1", "%\u00b2\u00b3"}) {
            RawClient.Reply reply = client.ask(get("/v0/entity?id=" + id));
            assertThat(reply.status()).as(id).isEqualTo(400);
            assertThat(reply.closes()).as(id).isFalse();
        }
        assertThat(status(get("/v0/status"))).isEqualTo(200);
    }

    @Test
    void statusIs200WhenReady() throws IOException {
        assertThat(status(get("/v0/status"))).isEqualTo(200);
        assertThat(status(delete("/v0/status"))).isEqualTo(405);
    }

    @Test
    void everythingIs503BeforeThereIsAStore() throws IOException {
        KvServer starting = KvServer.bind(HttpOptions.onFreePort());
        try (RawClient early = new RawClient(starting.port())) {
            for (String request : new String[] {
                get("/v0/status"), get("/v0/entity?id=a"), put("/v0/entity?id=a", "v"), get("/v0/entities?start=a")
            }) {
                RawClient.Reply reply = early.ask(request);
                assertThat(reply.status()).isEqualTo(503);
                assertThat(reply.headers()).containsEntry("retry-after", "1");
            }
            starting.serve(store);
            assertThat(early.ask(get("/v0/status")).status()).isEqualTo(200);
        } finally {
            starting.stopInOrder();
        }
    }

    @Test
    void metricsCountRequestsByEndpointMethodAndStatus() throws IOException {
        client.ask(put("/v0/entity?id=a", "one"));
        client.ask(get("/v0/entity?id=b"));
        RawClient.Reply reply = client.ask(get("/metrics"));
        assertThat(reply.headers().get("content-type")).startsWith("text/plain; version=0.0.4");
        assertThat(reply.text())
                .contains("kv_http_requests_total{endpoint=\"entity\",method=\"put\",status=\"201\"} 1.0")
                .contains("kv_http_requests_total{endpoint=\"entity\",method=\"get\",status=\"404\"} 1.0")
                .contains("kv_http_connections{selector=\"0\"}")
                .contains("kv_http_io{implementation=\"" + NativeIo.label() + "\"} 1.0")
                .contains("kv_store_write_stalls_total{cause=\"frozen_memtables\"} 0.0")
                .contains("jvm_memory_used_bytes");
    }

    @Test
    void metricsCanBeAskedForByPrefix() throws IOException {
        client.ask(put("/v0/entity?id=a", "one"));
        String all = client.ask(get("/metrics?prefix=")).text();
        assertThat(all).contains("jvm_memory_used_bytes").contains("kv_http_requests_total");
        String store = client.ask(get("/metrics?prefix=kv%5Fstore")).text();
        assertThat(store.lines()).isNotEmpty().allMatch(line -> line.matches("(# (HELP|TYPE) )?kv_store.*"));
        RawClient.Reply none = client.ask(get("/metrics?prefix=nothing"));
        assertThat(none.status()).isEqualTo(200);
        assertThat(none.body()).isEmpty();
        RawClient.Reply malformed = client.ask(get("/metrics?prefix=%zz"));
        assertThat(malformed.status()).isEqualTo(400);
        assertThat(malformed.text()).contains("a prefix");
        RawClient.Reply tooLong = client.ask(get("/metrics?prefix=" + "k".repeat(1_025)));
        assertThat(tooLong.status()).isEqualTo(414);
        assertThat(tooLong.text()).contains("a prefix");
    }

    @Test
    void everyNameInTheMetricsIsAPrefixOfItself() throws IOException {
        server.server.describe(Map.of("version", "1.2.3"));
        client.ask(put("/v0/entity?id=a", "one"));
        List<String> names = client.ask(get("/metrics"))
                .text()
                .lines()
                .filter(line -> !line.startsWith("#"))
                .map(line -> line.split("[{ ]")[0])
                .distinct()
                .toList();
        assertThat(names)
                .contains(
                        "kv_build_info",
                        "kv_http_requests_total",
                        "kv_http_request_seconds_bucket",
                        "kv_http_request_seconds_count",
                        "kv_http_request_seconds_sum",
                        "kv_http_connections",
                        "kv_store_disk_reads_total");
        for (String name : names) {
            assertThat(client.ask(get("/metrics?prefix=" + name)).text().lines())
                    .as(name)
                    .anyMatch(line -> line.startsWith(name));
        }
        assertThat(client.ask(get("/metrics?prefix=kv_http_connections_"))
                        .text()
                        .lines())
                .isNotEmpty()
                .allMatch(line -> line.matches("(# (HELP|TYPE) )?kv_http_connections_.*"));
    }

    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void everyHandlerServesTheContract(HttpOptions.HandlerKind kind) throws IOException {
        try (TestServer other = new TestServer(
                        new MemoryStore(), HttpOptions.onFreePort().withHandler(kind, 2, 16));
                RawClient connection = other.connect()) {
            assertThat(connection.ask(get("/v0/entity?id=a")).status()).isEqualTo(404);
            assertThat(connection.ask(put("/v0/entity?id=a", "one")).status()).isEqualTo(201);
            assertThat(connection.ask(get("/v0/entity?id=a")).text()).isEqualTo("one");
            assertThat(connection.ask(get("/v0/entities?start=a")).text()).isEqualTo("a\none");
            assertThat(connection.ask(get("/v0/entity?id=")).status()).isEqualTo(400);
            assertThat(connection.ask(delete("/v0/entity?id=a")).status()).isEqualTo(202);
            assertThat(connection.ask(get("/v0/entity?id=a")).status()).isEqualTo(404);
            assertThat(connection
                            .ask("POST /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
                            .status())
                    .isEqualTo(405);
        }
    }
}
