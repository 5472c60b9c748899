package kv.http;

import io.prometheus.metrics.expositionformats.PrometheusTextFormatWriter;
import io.prometheus.metrics.instrumentation.jvm.JvmMetrics;
import io.prometheus.metrics.model.registry.MultiCollector;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.prometheus.metrics.model.snapshots.InfoSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import io.prometheus.metrics.model.snapshots.SummarySnapshot;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import kv.lsm.Store;

/// Counts requests and writes `/metrics`: the HTTP side, the store, the cache, the JVM.
final class HttpMetrics {
    private static final String CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";
    private final KvServer server;
    private final PrometheusRegistry registry = new PrometheusRegistry();
    private final RequestMetrics requests = new RequestMetrics();
    private volatile Map<String, String> build = Map.of();
    private volatile Store store;

    HttpMetrics(KvServer server) {
        this.server = server;
        JvmMetrics.builder().register(registry);
        registry.register((MultiCollector) this::collect);
    }

    /// @param labels of `kv_build_info`
    void describe(Map<String, String> labels) {
        build = labels;
    }

    void answered(Request request, int status, long endNanos) {
        requests.answered(request, status, endNanos);
    }

    void write(Store openOrNull, Request request, Output out) {
        store = openOrNull;
        ByteArrayOutputStream text = new ByteArrayOutputStream(16 << 10);
        try {
            String prefix = request.key == null ? "" : new String(request.key, StandardCharsets.UTF_8);
            PrometheusTextFormatWriter.create().write(text, scrape(prefix));
        } catch (IOException e) {
            throw new AssertionError("a byte array takes every byte", e);
        }
        out.text(text.toByteArray(), CONTENT_TYPE, request);
    }

    /// The metrics of which a name in the text begins with `prefix`. That is asked twice: the registry, which need
    /// not collect all of them, knows their names without the suffixes only.
    private MetricSnapshots scrape(String prefix) {
        MetricSnapshots maybe = registry.scrape(name -> name.startsWith(prefix) || prefix.startsWith(name));
        return new MetricSnapshots(maybe.stream()
                .filter(metric -> suffixes(metric).stream()
                        .map(suffix -> metric.getMetadata().getPrometheusName() + suffix)
                        .anyMatch(name -> name.startsWith(prefix)))
                .toList());
    }

    /// What the text adds to the name of a metric of this type.
    private static List<String> suffixes(MetricSnapshot metric) {
        return switch (metric) {
            case CounterSnapshot counter -> List.of("_total");
            case InfoSnapshot info -> List.of("_info");
            case HistogramSnapshot histogram -> List.of("_bucket", "_count", "_sum");
            case SummarySnapshot summary -> List.of("", "_count", "_sum");
            default -> List.of("");
        };
    }

    private MetricSnapshots collect() {
        Snapshots snapshots = new Snapshots();
        http(snapshots);
        StoreSnapshots.add(store, snapshots);
        return snapshots.build();
    }

    private void http(Snapshots to) {
        if (!build.isEmpty()) {
            to.info("kv_build", "What runs: version, git revision, Java, and every option.", build);
        }
        requests.add(to);
        Connections connections = server.connections();
        Snapshots.Labelled open = to.gauge("kv_http_connections", "Open connections by the selector that holds them.");
        for (int i = 0; i < server.options().selectors(); i++) {
            open.add(connections.heldBy(i), "selector", Integer.toString(i));
        }
        open.end();
        to.counter("kv_http_connections_accepted", "Connections accepted.")
                .add(connections.accepted())
                .end();
        to.counter("kv_http_connections_refused", "Connections closed at once: too many were open.")
                .add(connections.refused())
                .end();
        to.counter("kv_http_connections_cut", "Connections cut because they kept memory that was scarce for longest.")
                .add(server.reclaimer().cut())
                .end();
        to.gauge("kv_http_queue_requests", "Requests that wait for a worker.")
                .add(server.handler().waiting() + server.coldReads().waiting())
                .end();
        to.gauge("kv_http_memory_bytes", "Heap held by unfinished requests and unread answers.")
                .add(server.budget().bytesTaken())
                .end();
        to.gauge("kv_http_memory_limit_bytes", "Most heap that they may hold.")
                .add(server.budget().bytesMax())
                .end();
        to.gauge("kv_http_io", "1 for the implementation of one-nio's I/O that runs.")
                .add(1, "implementation", NativeIo.label())
                .end();
    }
}
