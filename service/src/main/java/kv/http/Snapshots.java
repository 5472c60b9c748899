package kv.http;

import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;

/// Metrics of one scrape, written as `name, help, value, label, label value, …`. Counters get their `_total` when they are
/// written out.
final class Snapshots {
    private final MetricSnapshots.Builder all = MetricSnapshots.builder();

    /// One metric under construction.
    interface Labelled {
        Labelled add(double value, String... labels);

        void end();
    }

    Labelled counter(String name, String help) {
        CounterSnapshot.Builder counter = CounterSnapshot.builder().name(name).help(help);
        return new Labelled() {
            @Override
            public Labelled add(double value, String... labels) {
                counter.dataPoint(CounterSnapshot.CounterDataPointSnapshot.builder()
                        .value(value)
                        .labels(Labels.of(labels))
                        .build());
                return this;
            }

            @Override
            public void end() {
                all.metricSnapshot(counter.build());
            }
        };
    }

    Labelled gauge(String name, String help) {
        GaugeSnapshot.Builder gauge = GaugeSnapshot.builder().name(name).help(help);
        return new Labelled() {
            @Override
            public Labelled add(double value, String... labels) {
                gauge.dataPoint(GaugeSnapshot.GaugeDataPointSnapshot.builder()
                        .value(value)
                        .labels(Labels.of(labels))
                        .build());
                return this;
            }

            @Override
            public void end() {
                all.metricSnapshot(gauge.build());
            }
        };
    }

    MetricSnapshots build() {
        return all.build();
    }
}
