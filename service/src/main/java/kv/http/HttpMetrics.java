package kv.http;

import io.prometheus.metrics.expositionformats.PrometheusTextFormatWriter;
import io.prometheus.metrics.instrumentation.jvm.JvmMetrics;
import io.prometheus.metrics.model.registry.MultiCollector;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.concurrent.atomic.LongAdder;
import kv.lsm.Store;

/// Counts requests and writes `/metrics`: the HTTP side, the store, the cache, the JVM.
final class HttpMetrics {
    private static final String CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";
    private static final int STATUS_MIN = 200;
    private static final int STATUS_MAX = 505;

    private final KvServer server;
    private final PrometheusRegistry registry = new PrometheusRegistry();
    private final LongAdder[][][] requests =
            new LongAdder[Request.Target.values().length][Request.Method.values().length][STATUS_MAX - STATUS_MIN + 1];
    private volatile Store store;

    HttpMetrics(KvServer server) {
        this.server = server;
        JvmMetrics.builder().register(registry);
        registry.register((MultiCollector) this::collect);
    }

    void count(Request request, int status) {
        LongAdder[] byStatus = requests[request.target.ordinal()][request.method.ordinal()];
        LongAdder counter = byStatus[status - STATUS_MIN];
        if (counter == null) {
            counter = firstOf(byStatus, status - STATUS_MIN);
        }
        counter.increment();
    }

    private static LongAdder firstOf(LongAdder[] byStatus, int index) {
        synchronized (byStatus) {
            if (byStatus[index] == null) {
                byStatus[index] = new LongAdder();
            }
            return byStatus[index];
        }
    }

    void write(Store openOrNull, Request request, Output out) {
        store = openOrNull;
        ByteArrayOutputStream text = new ByteArrayOutputStream(16 << 10);
        try {
            String prefix = request.key == null ? "" : new String(request.key, StandardCharsets.UTF_8);
            PrometheusTextFormatWriter.create().write(text, registry.scrape(name -> name.startsWith(prefix)));
        } catch (IOException e) {
            throw new AssertionError("a byte array takes every byte", e);
        }
        out.text(text.toByteArray(), CONTENT_TYPE, request);
    }

    private MetricSnapshots collect() {
        Snapshots snapshots = new Snapshots();
        http(snapshots);
        StoreSnapshots.add(store, snapshots);
        return snapshots.build();
    }

    private void http(Snapshots to) {
        Snapshots.Labelled byRequest = to.counter("kv_http_requests", "Requests answered.");
        for (Request.Target target : Request.Target.values()) {
            for (Request.Method method : Request.Method.values()) {
                LongAdder[] byStatus = requests[target.ordinal()][method.ordinal()];
                for (int i = 0; i < byStatus.length; i++) {
                    if (byStatus[i] != null) {
                        byRequest.add(
                                byStatus[i].sum(),
                                "endpoint", target.name().toLowerCase(Locale.ROOT),
                                "method", method.name().toLowerCase(Locale.ROOT),
                                "status", Integer.toString(STATUS_MIN + i));
                    }
                }
            }
        }
        byRequest.end();
        Connections connections = server.connections();
        Snapshots.Labelled open = to.gauge("kv_http_connections", "Open connections by the selector that holds them.");
        for (int i = 0; i < server.options().selectors(); i++) {
            open.add(connections.heldBy(i), "selector", Integer.toString(i));
        }
        open.end();
        to.counter("kv_http_connections_accepted", "Connections accepted.").add(connections.accepted()).end();
        to.counter("kv_http_connections_refused", "Connections closed at once: too many were open.")
                .add(connections.refused())
                .end();
        to.gauge("kv_http_queue_requests", "Requests that wait for a worker.").add(server.handler().waiting()).end();
        to.gauge("kv_http_memory_bytes", "Heap held by unfinished requests and unread answers.")
                .add(server.budget().bytesTaken())
                .end();
        to.gauge("kv_http_memory_limit_bytes", "Most heap that they may hold.").add(server.budget().bytesMax()).end();
        to.gauge("kv_http_io", "1 for the implementation of one-nio's I/O that runs.")
                .add(1, "implementation", NativeIo.label())
                .end();
    }
}
