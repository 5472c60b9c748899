package kv.http;

import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;
import kv.Eventually;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// The histograms of `/metrics`, read as a client reads them.
class LatencyMetricsTest {
    private static double value(String metrics, String line) {
        return metrics.lines()
                .filter(l -> l.startsWith(line + " "))
                .map(l -> Double.parseDouble(l.substring(line.length() + 1)))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no line " + line + " in\n" + metrics));
    }

    private static String bucket(String labels, String le) {
        return "kv_http_request_seconds_bucket{" + labels + ",le=\"" + le + "\"}";
    }

    @ParameterizedTest
    @EnumSource
    void everyAnswerIsInTheHistogramOfItsEndpointMethodAndStatus(HttpOptions.HandlerKind handler) throws IOException {
        try (TestServer server = new TestServer(
                        new MemoryStore(), HttpOptions.onFreePort().withHandler(handler, 2, 64));
                RawClient client = server.connect()) {
            for (int i = 0; i < 30; i++) {
                client.ask(put("/v0/entity?id=" + i, "value"));
            }
            for (int i = 0; i < 50; i++) {
                client.ask(get("/v0/entity?id=" + i));
            }
            client.ask(get("/v0/entity?id="));
            String metrics = client.ask(get("/metrics?prefix=kv_")).text();
            for (Map.Entry<String, Integer> wanted : Map.of(
                            "endpoint=\"entity\",method=\"put\",status=\"201\"", 30,
                            "endpoint=\"entity\",method=\"get\",status=\"200\"", 30,
                            "endpoint=\"entity\",method=\"get\",status=\"404\"", 20,
                            "endpoint=\"entity\",method=\"get\",status=\"400\"", 1)
                    .entrySet()) {
                String labels = wanted.getKey();
                assertThat(value(metrics, "kv_http_requests_total{" + labels + "}"))
                        .isEqualTo((double) wanted.getValue());
                assertThat(value(metrics, "kv_http_request_seconds_count{" + labels + "}"))
                        .isEqualTo((double) wanted.getValue());
                assertThat(value(metrics, bucket(labels, "+Inf"))).isEqualTo((double) wanted.getValue());
                assertThat(value(metrics, "kv_http_request_seconds_sum{" + labels + "}"))
                        .isBetween(1e-6, 30.0);
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void whatTheStoreTakesIsInTheLatency(HttpOptions.HandlerKind handler) throws IOException {
        MemoryStore store = new MemoryStore();
        store.beforeEach = () -> LockSupport.parkNanos(150_000_000);
        try (TestServer server = new TestServer(store, HttpOptions.onFreePort().withHandler(handler, 2, 64));
                RawClient client = server.connect()) {
            client.ask(get("/v0/entity?id=a"));
            String metrics =
                    client.ask(get("/metrics?prefix=kv_http_request_seconds")).text();
            String labels = "endpoint=\"entity\",method=\"get\",status=\"404\"";
            assertThat(value(metrics, bucket(labels, "0.134217728"))).isZero();
            assertThat(value(metrics, "kv_http_request_seconds_sum{" + labels + "}"))
                    .isBetween(0.15, 20.0);
        }
    }

    /// A request waits on its selector behind those that are answered before it: the client feels that, so it
    /// counts.
    @Test
    void waitingForAnotherConnectionsRequestOnTheSelectorIsInTheLatency() throws IOException {
        MemoryStore store = new MemoryStore();
        try (TestServer server = new TestServer(store, HttpOptions.onFreePort().withSelectors(1));
                RawClient first = server.connect();
                RawClient second = server.connect();
                RawClient third = server.connect()) {
            first.ask(get("/v0/status"));
            second.ask(get("/v0/status"));
            Semaphore isAnswered = new Semaphore(0);
            Semaphore bothAreSent = new Semaphore(0);
            store.beforeEach = () -> {
                if (isAnswered.availablePermits() == 0) {
                    isAnswered.release();
                    bothAreSent.acquireUninterruptibly();
                } else {
                    LockSupport.parkNanos(100_000_000);
                }
            };
            third.send(get("/v0/entity?id=c")); // while it is answered, the other two become ready together
            Eventually.holds(() -> isAnswered.availablePermits() > 0);
            first.send(get("/v0/entity?id=a"));
            second.send(get("/v0/entity?id=b"));
            bothAreSent.release();
            first.read();
            second.read();
            third.read();
            String metrics =
                    first.ask(get("/metrics?prefix=kv_http_request_seconds")).text();
            String labels = "endpoint=\"entity\",method=\"get\",status=\"404\"";
            assertThat(value(metrics, "kv_http_request_seconds_count{" + labels + "}"))
                    .isEqualTo(3.0);
            assertThat(value(metrics, "kv_http_request_seconds_sum{" + labels + "}"))
                    .isGreaterThan(0.299);
        }
    }

    @Test
    void theBuildIsAnInfoMetricWithItsOptions() throws IOException {
        try (TestServer server = new TestServer(new MemoryStore())) {
            server.server.describe(Map.of("version", "1.2.3", "revision", "abc", "wal", "interval"));
            assertThat(server.ask(get("/metrics?prefix=kv_build")).text())
                    .contains("kv_build_info{revision=\"abc\",version=\"1.2.3\",wal=\"interval\"} 1");
        }
    }
}
