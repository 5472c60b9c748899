package kv.http;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import kv.Eventually;
import kv.lsm.Administration;
import kv.lsm.PendingWrite;
import kv.lsm.WriteBatch;
import org.junit.jupiter.api.Test;

/// Random requests over real connections: valid ones, in random forms and pieces, whose answers are known, and
/// behind them damaged ones.
///
/// ```
/// connection: valid valid … valid damaged end of input
/// answers:    exact exact … exact any that are well formed, then the end of the connection: no hang, no 500
/// ```
///
/// `-Dkv.fuzz.requests=1000000` and `-Dkv.fuzz.seed=N` for more of them and for the same ones again.
class HttpFuzzTest {
    private static final int REQUESTS = Integer.getInteger("kv.fuzz.requests", 30_000);
    private static final int THREADS = 3;
    private static final int KEYS = 20;
    private static final int VALUE_BYTES_MAX = 70_000;
    /// So few that some batches are too long, and the values of some keys together.
    private static final int BATCH_BYTES_MAX = 100_000;

    /// Not 500: no request can make the service fail. Not 503: memory and queues are never full here.
    private static final Set<Integer> STATUSES =
            Set.of(100, 200, 201, 202, 400, 404, 405, 413, 414, 417, 431, 501, 505);
    /// Long, so that no damage makes one of the valid requests' keys of it.
    private static final String DAMAGED_KEY = "xxxxxxxxxxxxxxxx";

    private static final String DAMAGE = "\r\n: %x\0;,=09f";

    private record Expected(int status, Consumer<String> body) {
        Expected(int status) {
            this(status, body -> {});
        }

        Expected(int status, String exactly) {
            this(status, body -> assertThat(body).isEqualTo(exactly));
        }
    }

    /// With batches and an operator's requests, which find nothing to do.
    private static final class FuzzedStore extends MemoryStore {
        @Override
        public PendingWrite begin(WriteBatch batch) {
            for (WriteBatch.Write write : batch.writes()) {
                if (write.valueOrNull() == null) {
                    delete(write.key());
                } else {
                    put(write.key(), write.valueOrNull());
                }
            }
            return PendingWrite.DONE;
        }

        @Override
        public Administration administration() {
            return new Administration() {
                @Override
                public void flush(BooleanSupplier giveUp) {}

                @Override
                public void compact(BooleanSupplier giveUp) {}

                @Override
                public void checkpoint(Path directory, BooleanSupplier giveUp) {}

                @Override
                public boolean awaitIdle(Duration limit, BooleanSupplier giveUp) {
                    return true;
                }
            };
        }
    }

    /// One client of its own keys.
    private static final class Fuzzer {
        private final TestServer server;
        private final Random random;
        private final String prefix;
        private final NavigableMap<String, String> model = new TreeMap<>();
        int requests;

        Fuzzer(TestServer server, long seed, int number) {
            this.server = server;
            this.random = new Random(seed + number);
            this.prefix = "t" + number + "k";
        }

        void connection() throws IOException {
            StringBuilder bytes = new StringBuilder();
            List<Expected> expected = new ArrayList<>();
            int count = random.nextInt(20);
            for (int i = 0; i < count; i++) {
                expected.add(valid(bytes));
            }
            boolean damaged = random.nextBoolean();
            if (damaged) {
                for (int i = 0; i <= random.nextInt(3); i++) {
                    bytes.append(damaged());
                    requests++;
                }
            }
            requests += count;
            try (RawClient client = server.connect()) {
                List<byte[]> pieces = pieces(bytes.toString().getBytes(ISO_8859_1));
                Thread sender = Thread.startVirtualThread(() -> send(client, pieces));
                for (Expected answer : expected) {
                    RawClient.Reply reply = client.read();
                    assertThat(reply.status()).isEqualTo(answer.status);
                    answer.body.accept(reply.text());
                }
                for (RawClient.Reply more = client.readOrEnd(); more != null; more = client.readOrEnd()) {
                    assertThat(damaged).as("an answer that nobody asked for").isTrue();
                    assertThat(more.status()).isIn(STATUSES);
                }
                sender.interrupt();
            }
        }

        private List<byte[]> pieces(byte[] all) {
            List<byte[]> pieces = new ArrayList<>();
            for (int at = 0; at < all.length; ) {
                int end = random.nextInt(3) == 0 ? all.length : at + 1 + random.nextInt(all.length - at);
                pieces.add(Arrays.copyOfRange(all, at, end));
                at = end;
            }
            return pieces;
        }

        private static void send(RawClient client, List<byte[]> pieces) {
            try {
                for (byte[] piece : pieces) {
                    client.send(piece);
                }
                client.endOfInput();
            } catch (IOException e) {
                // the service has refused the rest, or the client is through
            }
        }

        private Expected valid(StringBuilder to) {
            String key = prefix + random.nextInt(KEYS);
            String target = "/v0/entity?id=" + encoded(key);
            switch (random.nextInt(10)) {
                case 0, 1 -> {
                    String value = value();
                    to.append("PUT ").append(target).append(" HTTP/1.1\r\n").append(headers());
                    appendBody(to, value);
                    model.put(key, value);
                    return new Expected(201, "");
                }
                case 2 -> {
                    to.append("DELETE ")
                            .append(target)
                            .append(" HTTP/1.1\r\n")
                            .append(headers())
                            .append("\r\n");
                    model.remove(key);
                    return new Expected(202, "");
                }
                case 3 -> {
                    to.append("GET /v0/entities?start=")
                            .append(encoded(key))
                            .append("&end=")
                            .append(encoded(key + "0"));
                    to.append(" HTTP/1.1\r\n").append(headers()).append("\r\n");
                    return new Expected(200, model.containsKey(key) ? key + "\n" + model.get(key) : "");
                }
                case 4 -> {
                    to.append("POST ").append(target).append(" HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
                    return new Expected(405);
                }
                case 5 -> {
                    return limitedRange(to);
                }
                case 6 -> {
                    return getOfMany(to);
                }
                case 7 -> {
                    return batch(to);
                }
                case 8 -> {
                    return admin(to);
                }
                default -> {
                    to.append("GET ")
                            .append(target)
                            .append(" HTTP/1.1\r\n")
                            .append(headers())
                            .append("\r\n");
                    return model.containsKey(key) ? new Expected(200, model.get(key)) : new Expected(404, "");
                }
            }
        }

        private Expected limitedRange(StringBuilder to) {
            int limit = random.nextInt(KEYS + 2);
            boolean malformed = random.nextInt(5) == 0;
            to.append("GET /v0/entities?start=")
                    .append(encoded(prefix))
                    .append("&limit=")
                    .append(malformed ? "-" : "")
                    .append(limit)
                    .append("&end=")
                    .append(encoded(prefix + "z"))
                    .append(" HTTP/1.1\r\n")
                    .append(headers())
                    .append("\r\n");
            if (malformed) {
                return new Expected(400);
            }
            StringBuilder entries = new StringBuilder();
            model.entrySet().stream()
                    .limit(limit)
                    .forEach(
                            entry -> entries.append(entry.getKey()).append('\n').append(entry.getValue()));
            return new Expected(200, entries.toString());
        }

        private Expected getOfMany(StringBuilder to) {
            StringBuilder body = new StringBuilder();
            StringBuilder answer = new StringBuilder();
            boolean tooLong = false;
            int valueBytes = 0;
            for (int i = random.nextInt(8); i > 0; i--) {
                String key = prefix + random.nextInt(KEYS);
                body.append(key.length()).append('\n').append(key).append('\n');
                String value = model.get(key);
                if (value == null) {
                    answer.append("-1\n");
                } else {
                    valueBytes += value.length();
                    tooLong |= valueBytes > BATCH_BYTES_MAX;
                    answer.append(value.length()).append('\n').append(value).append('\n');
                }
            }
            boolean malformed = random.nextInt(5) == 0;
            post(to, "/v0/entities/get", body + (malformed ? "0\n\n" : ""));
            return tooLong ? new Expected(413) : malformed ? new Expected(400) : new Expected(200, answer.toString());
        }

        private Expected batch(StringBuilder to) {
            StringBuilder body = new StringBuilder();
            Map<String, String> after = new HashMap<>(model);
            int writes = random.nextInt(8);
            for (int i = 0; i < writes; i++) {
                String key = prefix + random.nextInt(KEYS);
                if (random.nextInt(3) == 0) {
                    body.append("delete ").append(key.length()).append('\n').append(key);
                    after.remove(key);
                } else {
                    String value = value();
                    body.append("put ").append(key.length()).append(' ').append(value.length());
                    body.append('\n').append(key).append(value);
                    after.put(key, value);
                }
                body.append('\n');
            }
            boolean malformed = random.nextInt(5) == 0;
            body.append(malformed ? "put 1 1\nab" : "");
            post(to, "/v0/entities/batch", body.toString());
            if (body.length() > BATCH_BYTES_MAX || malformed) {
                return new Expected(body.length() > BATCH_BYTES_MAX ? 413 : 400);
            }
            model.clear();
            model.putAll(after);
            return new Expected(200, writes + "\n");
        }

        private Expected admin(StringBuilder to) {
            String what = List.of("flush", "compact", "idle", "checkpoint").get(random.nextInt(4));
            String query = switch (what) {
                case "idle" -> random.nextBoolean() ? "" : "?timeout-ms=" + random.nextInt(1_000);
                case "checkpoint" -> "?dir=" + encoded("/nowhere/" + prefix);
                default -> "";
            };
            switch (random.nextInt(6)) {
                case 0 -> {
                    to.append("GET /v0/admin/").append(what).append(" HTTP/1.1\r\nHost: x\r\n\r\n");
                    return new Expected(405);
                }
                case 1 -> {
                    post(to, "/v0/admin/" + what + "s", "");
                    return new Expected(404);
                }
                case 2 -> {
                    post(to, random.nextBoolean() ? "/v0/admin/idle?timeout-ms=" : "/v0/admin/checkpoint?dir=a", "");
                    return new Expected(400);
                }
                default -> {
                    post(to, "/v0/admin/" + what + query, random.nextBoolean() ? "" : "nobody reads this");
                    return new Expected(
                            200,
                            body -> assertThat(body).matches("done: request=" + what + ", seconds=\\d+\\.\\d{3}\n"));
                }
            }
        }

        private void post(StringBuilder to, String target, String body) {
            to.append("POST ").append(target).append(" HTTP/1.1\r\n").append(headers());
            appendBody(to, body);
        }

        private void appendBody(StringBuilder to, String body) {
            if (random.nextBoolean()) {
                to.append("Content-Length: ")
                        .append(body.length())
                        .append("\r\n\r\n")
                        .append(body);
            } else {
                to.append("Transfer-Encoding: chunked\r\n\r\n").append(chunked(body));
            }
        }

        private String value() {
            int length = random.nextInt(50) == 0 ? random.nextInt(VALUE_BYTES_MAX) : random.nextInt(100);
            StringBuilder value = new StringBuilder(length);
            for (int i = 0; i < length; i++) {
                value.append((char) random.nextInt(256));
            }
            return value.toString();
        }

        private String encoded(String key) {
            StringBuilder encoded = new StringBuilder();
            for (char c : key.toCharArray()) {
                encoded.append(random.nextInt(4) == 0 ? String.format("%%%02x", (int) c) : String.valueOf(c));
            }
            return encoded.toString();
        }

        private String headers() {
            return switch (random.nextInt(5)) {
                case 0 -> "X-Long: " + "y".repeat(random.nextInt(3_000)) + "\r\nhost:x:80\r\n";
                case 1 -> "Accept: */*\r\nHOST:\r\nConnection: keep-alive\r\n";
                default -> "Host: x\r\n";
            };
        }

        private String chunked(String value) {
            StringBuilder chunks = new StringBuilder();
            for (int at = 0; at < value.length(); ) {
                int end = at + 1 + random.nextInt(value.length() - at);
                chunks.append(Integer.toHexString(end - at))
                        .append(random.nextInt(4) == 0 ? ";a=b" : "")
                        .append("\r\n");
                chunks.append(value, at, end).append("\r\n");
                at = end;
            }
            return chunks + "0\r\n" + (random.nextInt(4) == 0 ? "X-Trailer: 1\r\n" : "") + "\r\n";
        }

        private static String posted(String target, String body) {
            return "POST " + target + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + body.length() + "\r\n\r\n" + body;
        }

        private String damaged() {
            String body = "v".repeat(random.nextInt(40));
            StringBuilder request = new StringBuilder(
                    switch (random.nextInt(8)) {
                        case 0 ->
                            "PUT /v0/entity?id=" + DAMAGED_KEY + " HTTP/1.1\r\nHost: x\r\nContent-Length: "
                                    + body.length() + "\r\n\r\n" + body;
                        case 1 ->
                            "PUT /v0/entity?id=" + DAMAGED_KEY
                                    + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body);
                        case 2 ->
                            "PUT /v0/entity?id=" + DAMAGED_KEY
                                    + " HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nbody";
                        case 3 ->
                            "GET /v0/entities?start=" + DAMAGED_KEY + "&end=" + DAMAGED_KEY + "y HTTP/1."
                                    + random.nextInt(3) + "\r\nHost: x\r\n\r\n";
                        case 4 -> posted("/v0/entities/get", "16\n" + DAMAGED_KEY + "\n16\n" + DAMAGED_KEY + "\n");
                        case 5 ->
                            posted(
                                    "/v0/entities/batch",
                                    "put 16 " + body.length() + "\n" + DAMAGED_KEY + body + "\ndelete 16\n"
                                            + DAMAGED_KEY + "\n");
                        case 6 -> posted("/v0/admin/" + (random.nextBoolean() ? "flush" : "idle?timeout-ms=1"), "");
                        default ->
                            "GET /v0/entity?id=" + DAMAGED_KEY
                                    + " HTTP/1.1\r\nHost: x\r\nConnection: close, keep-alive\r\n\r\n";
                    });
            for (int i = 0; i <= random.nextInt(4); i++) {
                int at = random.nextInt(request.length());
                switch (random.nextInt(4)) {
                    case 0 -> request.setCharAt(at, (char) random.nextInt(256));
                    case 1 -> request.deleteCharAt(at);
                    case 2 -> request.insert(at, DAMAGE.charAt(random.nextInt(DAMAGE.length())));
                    default ->
                        request.insert(at, request.substring(at, Math.min(request.length(), at + random.nextInt(30))));
                }
            }
            return request.toString();
        }
    }

    @Test
    void everyRequestGetsItsAnswerAndDamagedOnesHarmNobody() throws Exception {
        long seed = Long.getLong("kv.fuzz.seed", System.nanoTime());
        for (HttpOptions.HandlerKind kind : HttpOptions.HandlerKind.values()) {
            HttpOptions options = HttpOptions.onFreePort()
                    .withHandler(kind, 2, 100_000)
                    .withLimits(VALUE_BYTES_MAX, 10_000)
                    .withOperations(new Operations(true, 10_000, BATCH_BYTES_MAX));
            try (TestServer server = new TestServer(new FuzzedStore(), options);
                    ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
                List<Future<Integer>> fuzzers = new ArrayList<>();
                for (int number = 0; number < THREADS; number++) {
                    Fuzzer fuzzer = new Fuzzer(server, seed + kind.ordinal() * 1_000L, number);
                    fuzzers.add(threads.submit(() -> {
                        while (fuzzer.requests < REQUESTS / HttpOptions.HandlerKind.values().length / THREADS) {
                            fuzzer.connection();
                        }
                        return fuzzer.requests;
                    }));
                }
                int requests = 0;
                for (Future<Integer> fuzzer : fuzzers) {
                    requests += fuzzer.get();
                }
                System.out.printf("%s: %d requests, kv.fuzz.seed=%d%n", kind, requests, seed);
                Eventually.holds(() -> server.server.connections().size() == 0);
                Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
            } catch (Exception | AssertionError e) {
                throw new AssertionError("handler " + kind + ", kv.fuzz.seed=" + seed, e);
            }
        }
    }
}
