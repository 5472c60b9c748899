package kv.http;

import java.util.Locale;
import java.util.stream.IntStream;
import kv.http.metrics.LatencyHistograms;

/// Counts answers and their latencies by endpoint, method and status.
///
/// A latency reaches from when the selector found the connection ready, or from when a request that waited
/// behind another of its connection had its turn, to when the answer was there: waiting for others of the round
/// and for a worker is in it, the client's network is not. For a range it ends with the first entries.
final class RequestMetrics {
    private static final int STATUS_MIN = 200;
    private static final int[] STATUSES = IntStream.concat(IntStream.of(STATUS_MIN), IntStream.of(Answer.statuses()))
            .sorted()
            .distinct()
            .toArray();
    private static final int[] PLACES = new int[STATUSES[STATUSES.length - 1] - STATUS_MIN + 1];
    private static final Target[] TARGETS = Target.values();
    private static final Request.Method[] METHODS = Request.Method.values();

    static {
        for (int i = 0; i < STATUSES.length; i++) {
            PLACES[STATUSES[i] - STATUS_MIN] = i;
        }
    }

    private final LatencyHistograms histograms =
            new LatencyHistograms(TARGETS.length * METHODS.length * STATUSES.length);

    void answered(Request request, int status, long endNanos) {
        int series = series(request.target, request.method, PLACES[status - STATUS_MIN]);
        histograms.record(series, endNanos - request.startNanos);
    }

    private static int series(Target target, Request.Method method, int statusPlace) {
        return (target.ordinal() * METHODS.length + method.ordinal()) * STATUSES.length + statusPlace;
    }

    void add(Snapshots to) {
        Snapshots.Labelled counts = to.counter("kv_http_requests", "Requests answered.");
        Snapshots.Histogram latencies = to.histogram(
                "kv_http_request_seconds",
                "From when the selector found the connection ready to when the answer was there; of a range "
                        + "its first entries.");
        for (Target target : TARGETS) {
            for (Request.Method method : METHODS) {
                for (int place = 0; place < STATUSES.length; place++) {
                    LatencyHistograms.Snapshot snapshot = histograms.snapshot(series(target, method, place));
                    if (snapshot != null) {
                        String[] labels = {
                            "endpoint", target.name().toLowerCase(Locale.ROOT),
                            "method", method.name().toLowerCase(Locale.ROOT),
                            "status", Integer.toString(STATUSES[place])
                        };
                        counts.add(snapshot.count(), labels);
                        latencies.add(snapshot, labels);
                    }
                }
            }
        }
        counts.end();
        latencies.end();
    }
}
