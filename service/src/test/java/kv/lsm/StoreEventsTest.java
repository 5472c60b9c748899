package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StoreEventsTest {
    @TempDir
    Path directory;

    @Test
    void aRecordingTellsOfFlushesCompactionsStallsAndSyncs() throws Exception {
        try (Recording recording = new Recording()) {
            for (String name : List.of("kv.Flush", "kv.Compaction", "kv.WriteStall", "kv.WalSync")) {
                recording.enable(name).withoutThreshold();
            }
            recording.start();
            work();
            recording.stop();
            Path file = directory.resolve("events.jfr");
            recording.dump(file);
            Map<String, List<RecordedEvent>> events = RecordingFile.readAllEvents(file).stream()
                    .collect(Collectors.groupingBy(event -> event.getEventType().getName()));
            assertThat(events.get("kv.Flush")).allSatisfy(event -> {
                assertThat(event.getLong("bytesWritten")).isPositive();
                assertThat(event.getLong("entries")).isPositive();
            });
            assertThat(events.get("kv.Compaction")).allSatisfy(event -> {
                assertThat(event.getString("cause")).isIn("level0_runs", "level_bytes");
                assertThat(event.getInt("toLevel")).isGreaterThan(0);
                assertThat(event.getLong("bytesRead")).isPositive();
            });
            assertThat(events.get("kv.WalSync"))
                    .allSatisfy(event -> assertThat(event.getLong("bytes")).isPositive());
            assertThat(events.get("kv.WriteStall"))
                    .allSatisfy(event -> assertThat(event.getString("cause")).isEqualTo("frozen_memtables"));
        }
    }

    /// Enough for several compactions; one frozen memtable makes the writer wait sooner or later.
    private void work() {
        try (Store store = LsmStore.open(StoreOptions.at(directory.resolve("store")).toBuilder()
                .wal(WalMode.ALWAYS)
                .memtableBytes(1 << 14)
                .frozenMemtablesMax(1)
                .level0(2, 100, 200)
                .build())) {
            for (int i = 0; !enough(store.metrics()); i++) {
                store.put(Records.bytes("key" + i % 5_000), new byte[1_000]);
            }
        }
    }

    private static boolean enough(StoreMetrics metrics) {
        return metrics.flushes() > 2
                && metrics.compactions() > 1
                && metrics.stalls().get(StallCause.FROZEN_MEMTABLES).count() > 0;
    }
}
