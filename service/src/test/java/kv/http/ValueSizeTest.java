package kv.http;

import static kv.http.RawClient.get;
import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import kv.lsm.LsmStore;
import kv.lsm.Store;
import kv.lsm.StoreOptions;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Values of every size that takes another way through the service come back whole, and no size waits for the
/// client's delayed acknowledgement, which Linux sends after 40 ms.
class ValueSizeTest {
    private static final int KIB = 1 << 10;
    /// around what is copied behind the head (16 and 63 KiB), one read (64 000 bytes), one call and one turn of
    /// writing
    private static final int[] SIZES = {
        0,
        1,
        15 * KIB,
        16 * KIB,
        16 * KIB + 1,
        17 * KIB,
        60_000,
        62 * KIB,
        63 * KIB,
        63 * KIB + 1,
        63_900,
        64 * KIB,
        65 * KIB,
        256 * KIB,
        1024 * KIB - 1,
        1024 * KIB
    };
    private static final int ANSWERS = 40;
    /// The first answers of a connection are acknowledged at once: only the last ones tell.
    private static final int LAST_ANSWERS = 10;
    private static final long DELAYED_ACKNOWLEDGEMENT_NANOS = 38_000_000;

    /// Around what an output copies, with other answers before it and behind.
    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void pipelinedValuesAround63And64KibComeBackWholeAndInOrder(HttpOptions.HandlerKind handler) throws Exception {
        MemoryStore store = new MemoryStore();
        Random random = new Random(7);
        try (TestServer server = new TestServer(store, HttpOptions.onFreePort().withHandler(handler, 2, 16));
                RawClient client = server.connect()) {
            for (int size = 63 * KIB - 300; size < 64 * KIB + 300; size += 41) {
                byte[] value = new byte[size];
                byte[] before = new byte[random.nextInt(40 * KIB)];
                random.nextBytes(value);
                random.nextBytes(before);
                store.put(new byte[] {'a'}, value);
                store.put(new byte[] {'b'}, before);
                client.send((get("/v0/entity?id=b") + get("/v0/entity?id=a")).repeat(2) + get("/v0/status"));
                for (int i = 0; i < 2; i++) {
                    assertThat(client.read().body())
                            .as("before a value of %d bytes", size)
                            .isEqualTo(before);
                    assertThat(client.read().body())
                            .as("value of %d bytes", size)
                            .isEqualTo(value);
                }
                assertThat(client.read().status()).isEqualTo(200);
            }
        }
    }

    /// The array of one answer may take the next value of its length, but not before a slow client has all of it.
    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void whatASlowClientHasNotReadStaysWhileOthersReadValuesOfThatLength(
            HttpOptions.HandlerKind handler, @TempDir Path directory) throws Exception {
        try (Store store = LsmStore.open(StoreOptions.at(directory));
                TestServer server = new TestServer(
                        store, HttpOptions.onFreePort().withSelectors(1).withHandler(handler, 1, 16));
                RawClient slow = server.connectWithBuffer(16 * KIB);
                RawClient quick = server.connect()) {
            for (char key = 'a'; key <= 'h'; key++) {
                store.put(new byte[] {(byte) key}, filled(key));
            }
            // One by one: requests that come together are answered out of arrays of their own. 16 MiB are more than
            // sockets hold.
            for (int i = 0; i < 32; i++) {
                slow.send(get("/v0/entity?id=a"));
                readAll(quick);
            }
            for (int i = 0; i < 32; i++) {
                assertThat(slow.read().body()).isEqualTo(filled('a'));
            }
        }
    }

    private static void readAll(RawClient client) throws Exception {
        for (char key = 'a'; key <= 'h'; key++) {
            client.send(get("/v0/entity?id=" + key));
            assertThat(client.read().body()).isEqualTo(filled(key));
        }
    }

    private static byte[] filled(char key) {
        byte[] value = new byte[512 * KIB];
        Arrays.fill(value, (byte) key);
        return value;
    }

    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void everySizeComesBackWholeAndAtOnce(HttpOptions.HandlerKind handler) throws Exception {
        HttpOptions options = HttpOptions.onFreePort().withHandler(handler, 2, 16);
        try (TestServer server = new TestServer(new MemoryStore(), options)) {
            for (int size : SIZES) {
                byte[] value = new byte[size];
                new Random(size).nextBytes(value);
                try (RawClient client = server.connect()) {
                    client.send("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: " + size + "\r\n\r\n")
                            .send(value);
                    assertThat(client.read().status())
                            .as("PUT of %d bytes", size)
                            .isEqualTo(201);
                    long fastest = Long.MAX_VALUE;
                    for (int i = 0; i < ANSWERS; i++) {
                        long start = System.nanoTime();
                        RawClient.Reply reply = client.ask(get("/v0/entity?id=a"));
                        long took = System.nanoTime() - start;
                        assertThat(reply.body()).as("GET of %d bytes", size).isEqualTo(value);
                        fastest = i < ANSWERS - LAST_ANSWERS ? fastest : Math.min(fastest, took);
                    }
                    assertThat(fastest)
                            .as("nanoseconds of the fastest of the last GETs of %d bytes", size)
                            .isLessThan(DELAYED_ACKNOWLEDGEMENT_NANOS);
                }
            }
        }
    }
}
