package kv.http;

import static kv.http.RawClient.delete;
import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import kv.cache.CachedStore;
import kv.linearizability.Operation;
import kv.linearizability.RegisterChecker;
import kv.lsm.LsmStore;
import kv.lsm.Store;
import kv.lsm.StoreOptions;
import kv.lsm.WalMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// What many clients saw at the same time can be explained by one order of all operations on a key. Some
/// clients hang up without waiting for their answer: those writes may or may not have happened.
class HttpHistoryTest {
    private static final int KEYS = 24;
    private static final int CLIENTS = 8;
    private static final int OPERATIONS_PER_CLIENT = 600;

    @TempDir
    private Path directory;

    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void historiesOfTheServiceAreLinearizable(HttpOptions.HandlerKind kind) throws Exception {
        for (WalMode wal : List.of(WalMode.OS, WalMode.ALWAYS)) {
            // memtables so small that reads cross flushes and compactions all the time
            StoreOptions options = StoreOptions.at(directory).toBuilder()
                    .wal(wal)
                    .memtableBytes(16 << 10)
                    .build();
            for (boolean cached : new boolean[] {false, true}) {
                Store store = LsmStore.open(options);
                assertThat(faults(cached ? new CachedStore(store, 8) : store, kind))
                        .as("cached: " + cached + ", wal: " + wal)
                        .isEmpty();
            }
        }
    }

    @Test
    void theCheckFindsAStoreThatSometimesReadsAnOldValue() throws Exception {
        assertThat(faults(new ForgetfulStore(), HttpOptions.HandlerKind.SELECTOR))
                .isNotEmpty();
    }

    /// The keys whose history has no explanation. Closes `store`.
    private static List<String> faults(Store store, HttpOptions.HandlerKind kind) throws Exception {
        Map<String, ConcurrentLinkedQueue<Operation>> histories = new ConcurrentHashMap<>();
        // a store that is used again holds what an earlier history left
        for (int k = 0; k < KEYS; k++) {
            store.delete(("key" + k).getBytes());
            histories.put("key" + k, new ConcurrentLinkedQueue<>());
        }
        long seed = System.nanoTime();
        List<Throwable> errors = new CopyOnWriteArrayList<>();
        try (TestServer server = new TestServer(store, HttpOptions.onFreePort().withHandler(kind, 4, 64))) {
            List<Thread> clients = new ArrayList<>();
            for (int c = 0; c < CLIENTS; c++) {
                int client = c;
                clients.add(Thread.ofPlatform().start(() -> {
                    try {
                        use(server, histories, client, new Random(seed + client));
                    } catch (Throwable e) {
                        errors.add(e);
                    }
                }));
            }
            for (Thread client : clients) {
                client.join();
            }
        }
        assertThat(errors).as("seed " + seed).isEmpty();
        List<String> faults = new ArrayList<>();
        histories.forEach((key, history) -> {
            if (!RegisterChecker.isLinearizable(List.copyOf(history))) {
                faults.add(key + ", seed " + seed);
            }
        });
        return faults;
    }

    private static void use(
            TestServer server, Map<String, ConcurrentLinkedQueue<Operation>> histories, int client, Random random)
            throws IOException {
        RawClient connection = server.connect();
        for (int i = 0; i < OPERATIONS_PER_CLIENT; i++) {
            String key = "key" + random.nextInt(KEYS);
            int kind = random.nextInt(10);
            String value =
                    kind == 0 ? null : "client " + client + " value " + i + " " + "x".repeat(random.nextInt(200));
            boolean hangUp = random.nextInt(50) == 0;
            String request = kind > 5
                    ? get("/v0/entity?id=" + key)
                    : value == null ? delete("/v0/entity?id=" + key) : put("/v0/entity?id=" + key, value);
            long call = System.nanoTime();
            connection.send(request);
            if (hangUp) {
                connection.close();
                connection = server.connect();
                if (kind <= 5) {
                    histories.get(key).add(Operation.write(value, call, Operation.NEVER));
                }
                continue;
            }
            RawClient.Reply reply = connection.read();
            long end = System.nanoTime();
            if (kind > 5) {
                assertThat(reply.status()).isIn(200, 404);
                histories.get(key).add(Operation.read(reply.status() == 404 ? null : reply.text(), call, end));
            } else {
                assertThat(reply.status()).isEqualTo(value == null ? 202 : 201);
                histories.get(key).add(Operation.write(value, call, end));
            }
        }
        connection.close();
    }

    /// The planted fault: one read in fifty gives the value before the last.
    private static final class ForgetfulStore extends MemoryStore {
        private final Map<String, byte[]> before = new ConcurrentHashMap<>();
        private final Random random = new Random(1);

        @Override
        public void put(byte[] key, byte[] value) {
            byte[] old = super.get(key);
            if (old != null) {
                before.put(Arrays.toString(key), old);
            }
            super.put(key, value);
        }

        @Override
        public byte[] get(byte[] key) {
            byte[] old = before.get(Arrays.toString(key));
            return old != null && random.nextInt(50) == 0 ? old : super.get(key);
        }
    }
}
