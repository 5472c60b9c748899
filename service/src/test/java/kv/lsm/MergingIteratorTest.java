package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.stream.Stream;
import kv.lsm.memory.EntryIterator;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

class MergingIteratorTest {
    private static NavigableMap<byte[], byte[]> source(String... entries) {
        NavigableMap<byte[], byte[]> map = new TreeMap<>(Arrays::compareUnsigned);
        for (String entry : entries) {
            String[] parts = entry.split("=");
            map.put(Records.bytes(parts[0]), parts[1].equals("†") ? null : Records.bytes(parts[1]));
        }
        return map;
    }

    private static List<String> merge(List<NavigableMap<byte[], byte[]>> newestFirst) {
        return Records.list(new MergingIterator(newestFirst.stream()
                .map(map -> (EntryIterator) new Records(map))
                .toList()));
    }

    @Test
    void theNewestSourceWinsAndItsTombstonesAreKept() {
        assertThat(merge(List.of(source("b=3", "c=†"), source("a=2", "c=2"), source("a=1", "b=1", "d=1"))))
                .containsExactly("a=2", "b=3", "c=†", "d=1");
    }

    @Test
    void keysThatShareEightBytesAreComparedWhole() {
        assertThat(merge(List.of(source("12345678b=1"), source("12345678=2", "12345678a=2", "12345678b=2"))))
                .containsExactly("12345678=2", "12345678a=2", "12345678b=1");
    }

    @Test
    void emptySourcesAreNothing() {
        assertThat(merge(List.of())).isEmpty();
        assertThat(merge(List.of(source(), source("a=1"), source()))).containsExactly("a=1");
    }

    @TestFactory
    Stream<DynamicTest> mergesAsMapsWould() {
        return Seeds.tests(50, seed -> {
            SplittableRandom random = new SplittableRandom(seed);
            List<NavigableMap<byte[], byte[]>> sources = new ArrayList<>();
            NavigableMap<String, String> wanted = new TreeMap<>();
            for (int s = random.nextInt(12); s > 0; s--) {
                NavigableMap<byte[], byte[]> source = source();
                for (int i = random.nextInt(60); i > 0; i--) {
                    String key = "%03d".formatted(random.nextInt(100));
                    source.put(Records.bytes(key), random.nextInt(4) == 0 ? null : Records.bytes("s" + s));
                }
                sources.add(source);
                source.forEach(
                        (key, value) -> wanted.putIfAbsent(new String(key), value == null ? "†" : new String(value)));
            }
            assertThat(merge(sources))
                    .isEqualTo(wanted.entrySet().stream()
                            .map(e -> e.getKey() + "=" + e.getValue())
                            .toList());
        });
    }
}
