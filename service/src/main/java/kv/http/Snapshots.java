package kv.http;

import io.prometheus.metrics.model.snapshots.ClassicHistogramBuckets;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.prometheus.metrics.model.snapshots.InfoSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import kv.http.metrics.LatencyBuckets;
import kv.http.metrics.LatencyHistograms;

/// Metrics of one scrape, written as `name, help, value, label, label value, …`. Counters get their `_total`
/// when they are written out.
final class Snapshots {
    private final MetricSnapshots.Builder all = MetricSnapshots.builder();

    /// One metric under construction.
    final class Labelled {
        private final BiConsumer<Double, Labels> dataPoints;
        private final Supplier<MetricSnapshot> metric;

        private Labelled(BiConsumer<Double, Labels> dataPoints, Supplier<MetricSnapshot> metric) {
            this.dataPoints = dataPoints;
            this.metric = metric;
        }

        Labelled add(double value, String... labels) {
            dataPoints.accept(value, Labels.of(labels));
            return this;
        }

        void end() {
            all.metricSnapshot(metric.get());
        }
    }

    /// One histogram under construction.
    final class Histogram {
        private final HistogramSnapshot.Builder histogram;

        private Histogram(HistogramSnapshot.Builder histogram) {
            this.histogram = histogram;
        }

        void add(LatencyHistograms.Snapshot latencies, String... labels) {
            ClassicHistogramBuckets.Builder buckets = ClassicHistogramBuckets.builder();
            for (int i = 0; i < LatencyBuckets.COUNT; i++) {
                long bound = LatencyBuckets.upperBoundNanos(i);
                buckets.bucket(
                        bound == Long.MAX_VALUE ? Double.POSITIVE_INFINITY : bound / 1e9,
                        latencies.buckets()[i]);
            }
            histogram.dataPoint(HistogramSnapshot.HistogramDataPointSnapshot.builder()
                    .classicHistogramBuckets(buckets.build())
                    .sum(latencies.sumNanos() / 1e9)
                    .labels(Labels.of(labels))
                    .build());
        }

        void end() {
            all.metricSnapshot(histogram.build());
        }
    }

    /// In seconds.
    Histogram histogram(String name, String help) {
        return new Histogram(HistogramSnapshot.builder().name(name).help(help));
    }

    /// A metric that is always 1 and tells by its labels; `_info` is added to its name.
    void info(String name, String help, Map<String, String> labels) {
        String[] keys = labels.keySet().toArray(String[]::new);
        String[] values = labels.values().toArray(String[]::new);
        all.metricSnapshot(InfoSnapshot.builder()
                .name(name)
                .help(help)
                .dataPoint(InfoSnapshot.InfoDataPointSnapshot.builder()
                        .labels(Labels.of(keys, values))
                        .build())
                .build());
    }

    Labelled counter(String name, String help) {
        CounterSnapshot.Builder counter = CounterSnapshot.builder().name(name).help(help);
        return new Labelled(
                (value, labels) -> counter.dataPoint(CounterSnapshot.CounterDataPointSnapshot.builder()
                        .value(value)
                        .labels(labels)
                        .build()),
                counter::build);
    }

    Labelled gauge(String name, String help) {
        GaugeSnapshot.Builder gauge = GaugeSnapshot.builder().name(name).help(help);
        return new Labelled(
                (value, labels) -> gauge.dataPoint(GaugeSnapshot.GaugeDataPointSnapshot.builder()
                        .value(value)
                        .labels(labels)
                        .build()),
                gauge::build);
    }

    MetricSnapshots build() {
        return all.build();
    }
}
