package kv.http;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static kv.http.RawClient.get;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import kv.Eventually;
import kv.lsm.CompactionPolicyKind;
import kv.lsm.Compression;
import kv.lsm.LsmStore;
import kv.lsm.ReadMode;
import kv.lsm.Store;
import kv.lsm.StoreOptions;
import kv.lsm.WalMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// What ranges that nobody reads cost, with the real store.
class UnreadRangesTest {
    private static final int CLIENTS = 16;
    private static final int RUNS = 3;
    private static final int VALUES = 4;
    private static final int VALUE_BYTES = 1 << 20;
    /// See service/docs/http.md.
    private static final long WAITING_BYTES_MAX = 32L << 20;
    /// Sockets take a part of the range, which may be read meanwhile; the store's own threads take some, too.
    private static final long OTHER_BYTES = 1 << 20;

    @TempDir
    Path directory;

    private final Map<String, byte[]> model = new TreeMap<>();

    private StoreOptions.Builder options() {
        return StoreOptions.at(directory).toBuilder().wal(WalMode.OS).compaction(CompactionPolicyKind.NONE);
    }

    /// Each run has keys between those of the others, so that a range has a block of each.
    private void fill(Store store) {
        Random random = new Random(7);
        for (int run = 0; run < RUNS; run++) {
            for (int i = 0; i < VALUES; i++) {
                byte[] value = new byte[VALUE_BYTES];
                random.nextBytes(value);
                Arrays.fill(value, VALUE_BYTES / 2, VALUE_BYTES, (byte) run); // so that it can be compressed
                String key = "key-%d-%d".formatted(i, run);
                store.put(key.getBytes(ISO_8859_1), value);
                model.put(key, value);
            }
            store.administration().flush(() -> false);
        }
        store.administration().awaitIdle(Duration.ofMinutes(1), () -> false);
        Eventually.holds(() -> store.metrics().pinnedBytes() == 0);
    }

    @ParameterizedTest
    @CsvSource({
        "PREAD, NONE, 0, SELECTOR",
        "PREAD, LZ4, 0, WORKERS",
        "MMAP, LZ4, 0, SELECTOR",
        "MMAP, LZ4, 0, VIRTUAL",
        "MMAP, NONE, 1, SELECTOR"
    })
    void rangesThatWaitForTheirClientsKeepABoundedAmountOfMemoryAndAreReadInFullAtLast(
            ReadMode read, Compression compression, long tableMemoryBytes, HttpOptions.HandlerKind handler)
            throws IOException {
        Store store = LsmStore.open(options()
                .read(read)
                .compression(compression)
                .tableMemoryBytes(tableMemoryBytes)
                .build());
        fill(store);
        HttpOptions http = HttpOptions.onFreePort()
                .withHandler(handler, 2, 1_024)
                .withTimeouts(600_000, 600_000)
                .withAnswerTimeout(600_000);
        List<RawClient> clients = new ArrayList<>();
        try (TestServer server = new TestServer(store, http)) {
            long before = store.metrics().offHeapBytes();
            for (int i = 0; i < CLIENTS; i++) {
                RawClient client = new RawClient(server.server.port(), 4_096);
                clients.add(client);
                client.send(get("/v0/entities?start=a"));
                assertThat(client.line()).isEqualTo("HTTP/1.1 200 OK");
            }
            assertThat(store.metrics().openCursors()).isEqualTo(CLIENTS);
            for (RawClient client : clients) {
                Eventually.holds(() -> store.metrics().offHeapBytes() - before <= WAITING_BYTES_MAX + OTHER_BYTES);
                assertThat(client.line()).isEqualTo("Transfer-Encoding: chunked");
                assertThat(client.line()).isEmpty();
                for (Map.Entry<String, byte[]> entry : model.entrySet()) {
                    assertIs(entry, client.chunk());
                }
                assertThat(client.chunk()).isEmpty();
            }
            Eventually.holds(() -> store.metrics().openCursors() == 0);
            Eventually.holds(() -> store.metrics().offHeapBytes() - before <= OTHER_BYTES);
        } finally {
            for (RawClient client : clients) {
                client.close();
            }
        }
    }

    private static void assertIs(Map.Entry<String, byte[]> entry, byte[] chunk) {
        int valueAt = entry.getKey().length() + 1;
        assertThat(new String(chunk, 0, valueAt, ISO_8859_1)).isEqualTo(entry.getKey() + "\n");
        assertThat(Arrays.equals(chunk, valueAt, chunk.length, entry.getValue(), 0, VALUE_BYTES))
                .as("value of %s", entry.getKey())
                .isTrue();
    }

    @Test
    void whatAnUnreadRangeKeepsOfReplacedTablesIsTheMetricOfPinnedBytes() throws IOException {
        Store store = LsmStore.open(options().build());
        fill(store);
        try (TestServer server = new TestServer(store)) {
            assertThat(pinnedBytes(server)).isZero();
            try (RawClient slow = new RawClient(server.server.port(), 4_096)) {
                slow.send(get("/v0/entities?start=a"));
                assertThat(slow.line()).isEqualTo("HTTP/1.1 200 OK");
                store.administration().compact(() -> false);
                Eventually.holds(() -> pinnedBytes(server) >= (double) RUNS * VALUES * VALUE_BYTES);
                assertThat(pinnedBytes(server)).isEqualTo(store.metrics().pinnedBytes());
            }
            Eventually.holds(() -> pinnedBytes(server) == 0);
        }
    }

    private static double pinnedBytes(TestServer server) {
        try {
            String text =
                    server.ask(get("/metrics?prefix=kv_store_pinned_bytes")).text();
            Matcher line = Pattern.compile("(?m)^kv_store_pinned_bytes (\\S+)$").matcher(text);
            assertThat(line.find()).as(text).isTrue();
            return Double.parseDouble(line.group(1));
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }
}
