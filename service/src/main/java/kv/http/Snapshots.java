package kv.http;

import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.util.function.BiConsumer;
import java.util.function.Supplier;

/// Metrics of one scrape, written as `name, help, value, label, label value, …`. Counters get their `_total` when they are
/// written out.
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
