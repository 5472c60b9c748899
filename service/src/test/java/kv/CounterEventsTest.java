package kv;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import jdk.jfr.Event;
import jdk.jfr.FlightRecorder;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingStream;
import kv.cache.CachedStore;
import kv.lsm.LsmStore;
import kv.lsm.Store;
import kv.lsm.StoreOptions;
import kv.lsm.WalMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CounterEventsTest {
    /// What the store did in [#work]; everything else that it counts stays at zero.
    private static final Set<String> MOVED = Set.of(
            "gets",
            "puts",
            "deletes",
            "userBytes",
            "walBytes",
            "memtableBytes",
            "offHeapBytes",
            "mappedBytes",
            "cacheHits",
            "cacheMisses",
            "cacheEntries");

    @TempDir
    Path directory;

    @Test
    void aRecordingHasTheCountersOfStoreAndCacheWhenItAsksForThem() throws Exception {
        CountDownLatch two = new CountDownLatch(2);
        try (Store store = new CachedStore(LsmStore.open(withoutSyncs()), 10);
                CounterEvents counters = new CounterEvents(store);
                RecordingStream recording = new RecordingStream()) {
            work(store);
            RecordedEvent[] last = new RecordedEvent[1];
            recording.enable("kv.Counters");
            recording.setReuse(false);
            recording.onEvent("kv.Counters", event -> {
                last[0] = event;
                two.countDown();
            });
            recording.startAsync();
            assertThat(two.await(1, TimeUnit.MINUTES)).isTrue();
            recording.stop();
            assertThat(last[0].getLong("puts")).isEqualTo(3);
            assertThat(last[0].getLong("gets")).isEqualTo(1);
            assertThat(last[0].getLong("deletes")).isEqualTo(1);
            assertThat(last[0].getLong("cacheMisses")).isEqualTo(1);
            assertThat(last[0].getLong("cacheHits")).isEqualTo(2);
            assertThat(last[0].getLong("userBytes")).isEqualTo(3 * ("k1".length() + 5) + "k3".length());
            List<String> moved = last[0].getFields().stream()
                    .map(field -> field.getName())
                    .filter(name -> !Set.of("startTime", "duration", "eventThread", "stackTrace")
                            .contains(name))
                    .filter(name -> last[0].<Number>getValue(name).longValue() != 0)
                    .toList();
            assertThat(moved).containsExactlyInAnyOrderElementsOf(MOVED);
        }
    }

    @Test
    void anEndedOneSaysNothingMore() throws Exception {
        try (Store store = LsmStore.open(StoreOptions.at(directory))) {
            new CounterEvents(store).close();
            CountDownLatch said = new CountDownLatch(1);
            CountDownLatch ticked = new CountDownLatch(2);
            try (RecordingStream recording = new RecordingStream()) {
                Runnable tick = () -> new Tick().commit();
                FlightRecorder.addPeriodicEvent(Tick.class, tick);
                recording.enable("kv.Counters");
                recording.enable(Tick.class).withPeriod(Duration.ofMillis(600));
                recording.onEvent("kv.Counters", event -> said.countDown());
                recording.onEvent(Tick.class.getName(), event -> ticked.countDown());
                recording.startAsync();
                assertThat(ticked.await(1, TimeUnit.MINUTES)).isTrue();
                FlightRecorder.removePeriodicEvent(tick);
            }
            assertThat(said.getCount()).isEqualTo(1);
        }
    }

    /// Shows that the recording goes on.
    static final class Tick extends Event {}

    private StoreOptions withoutSyncs() {
        return StoreOptions.at(directory).toBuilder().wal(WalMode.OS).build();
    }

    private static void work(Store store) {
        for (String key : List.of("k1", "k2", "k3")) {
            store.put(key.getBytes(StandardCharsets.UTF_8), new byte[5]);
        }
        for (int i = 0; i < 3; i++) {
            store.get("k1".getBytes(StandardCharsets.UTF_8));
        }
        store.delete("k3".getBytes(StandardCharsets.UTF_8));
    }
}
