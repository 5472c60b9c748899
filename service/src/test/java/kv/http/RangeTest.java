package kv.http;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static kv.http.RawClient.get;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import kv.Eventually;
import kv.lsm.RangeCursor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Range reads: what is in them, how they are framed, and that their size costs no memory.
class RangeTest {
    private static byte[] bytes(String text) {
        return text.getBytes(ISO_8859_1);
    }

    private static MemoryStore abc() {
        MemoryStore store = new MemoryStore();
        for (String key : List.of("a", "b", "c", "d")) {
            store.put(bytes(key), bytes("value of " + key));
        }
        return store;
    }

    @Test
    void theStartIsInTheEndIsNotAndEachEntryIsOneChunk() throws IOException {
        try (TestServer server = new TestServer(abc());
                RawClient client = server.connect()) {
            client.send(get("/v0/entities?start=b&end=d"));
            assertThat(client.line()).isEqualTo("HTTP/1.1 200 OK");
            assertThat(client.line()).isEqualTo("Transfer-Encoding: chunked");
            assertThat(client.line()).isEmpty();
            assertThat(client.chunks().stream().map(chunk -> new String(chunk, ISO_8859_1)))
                    .containsExactly("b\nvalue of b", "c\nvalue of c");
            assertThat(client.ask(get("/v0/entities?start=c")).text()).isEqualTo("c\nvalue of cd\nvalue of d");
        }
    }

    @Test
    void nothingFoundIs200WithoutBytes() throws IOException {
        try (TestServer server = new TestServer(abc());
                RawClient client = server.connect()) {
            for (String range : List.of("start=x", "start=bb&end=bc", "start=d&end=a", "start=b&end=b")) {
                RawClient.Reply reply = client.ask(get("/v0/entities?" + range));
                assertThat(reply.status()).as(range).isEqualTo(200);
                assertThat(reply.body()).as(range).isEmpty();
            }
        }
    }

    @Test
    void aMissingStartOrAnEmptyStartOrEndIs400() throws IOException {
        try (TestServer server = new TestServer(abc());
                RawClient client = server.connect()) {
            for (String range : List.of(
                    "",
                    "?",
                    "?start=",
                    "?end=b",
                    "?start=&end=b",
                    "?start=a&end=",
                    "?start=%&end=b",
                    "?start=a&end=%4")) {
                assertThat(client.ask(get("/v0/entities" + range)).status())
                        .as(range)
                        .isEqualTo(400);
            }
            assertThat(client.ask("PUT /v0/entities?start=a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
                            .status())
                    .isEqualTo(405);
        }
    }

    @Test
    void anHttp10ClientGetsTheBytesWithoutFramingAndTheEndOfTheConnection() throws IOException {
        try (TestServer server = new TestServer(abc());
                RawClient client = server.connect()) {
            RawClient.Reply reply = client.ask("GET /v0/entities?start=c HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
            assertThat(reply.headers()).doesNotContainKey("transfer-encoding").containsEntry("connection", "close");
            assertThat(reply.text()).isEqualTo("c\nvalue of cd\nvalue of d");
        }
    }

    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void aRangeLargerThanTheHeapIsStreamedWhileOthersAreServed(HttpOptions.HandlerKind kind) throws IOException {
        long bytesWanted = Runtime.getRuntime().maxMemory() + (64 << 20);
        byte[] value = new byte[60_000];
        MemoryStore endless = new GeneratedStore(value, bytesWanted / value.length);
        try (TestServer server =
                        new TestServer(endless, HttpOptions.onFreePort().withHandler(kind, 2, 16));
                RawClient client = server.connect();
                RawClient other = server.connect()) {
            client.send(get("/v0/entities?start=a") + get("/v0/status"));
            for (int i = 0; i < 3; i++) {
                client.line();
            }
            long read = 0;
            for (byte[] chunk = client.chunk(); chunk.length > 0; chunk = client.chunk()) {
                if (read >> 25 != read + chunk.length >> 25) {
                    assertThat(other.ask(get("/v0/entity?id=a")).status()).isEqualTo(404);
                }
                read += chunk.length;
            }
            assertThat(read).isGreaterThan(bytesWanted - value.length);
            assertThat(client.read().status())
                    .as("the pipelined request behind it")
                    .isEqualTo(200);
            Eventually.holds(() -> endless.openCursors.get() == 0);
            Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
        }
    }

    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void aClientThatLeavesReleasesItsCursor(HttpOptions.HandlerKind kind) throws IOException {
        MemoryStore endless = new GeneratedStore(new byte[10_000], 1_000_000);
        try (TestServer server =
                new TestServer(endless, HttpOptions.onFreePort().withHandler(kind, 2, 16))) {
            for (int i = 0; i < 10; i++) {
                try (RawClient client = server.connect()) {
                    client.send(get("/v0/entities?start=a"));
                    assertThat(client.line()).isEqualTo("HTTP/1.1 200 OK");
                }
            }
            Eventually.holds(() -> endless.openCursors.get() == 0);
            Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
        }
    }

    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void anErrorHalfWayCutsTheAnswerSoThatItCannotPassForAWholeOne(HttpOptions.HandlerKind kind) throws IOException {
        AtomicInteger steps = new AtomicInteger();
        MemoryStore failing = new GeneratedStore(new byte[10_000], 1_000_000);
        failing.beforeEach = () -> {
            if (steps.incrementAndGet() == 500) {
                throw new IllegalStateException("planted by the test");
            }
        };
        try (TestServer server =
                        new TestServer(failing, HttpOptions.onFreePort().withHandler(kind, 2, 16));
                RawClient client = server.connect()) {
            client.send(get("/v0/entities?start=a"));
            assertThatThrownBy(client::read).isInstanceOf(IOException.class);
            Eventually.holds(() -> failing.openCursors.get() == 0);
            assertThat(server.ask(get("/v0/status")).status()).isEqualTo(200);
        }
    }

    /// A client that asks again and again would fill the disk with stack traces.
    @Test
    void ofRangesThatFailHalfWayTheLogTellsNotEveryOne() throws Exception {
        int ranges = 40;
        AtomicInteger steps = new AtomicInteger();
        MemoryStore failing = new GeneratedStore(new byte[10_000], 1_000_000);
        failing.beforeEach = () -> {
            if (steps.incrementAndGet() % 500 == 0) {
                throw new IllegalStateException("planted by the test");
            }
        };
        try (CapturedLog log = new CapturedLog(LingeringSession.class);
                TestServer server = new TestServer(failing)) {
            for (int i = 0; i < ranges; i++) {
                assertThatThrownBy(() -> server.ask(get("/v0/entities?start=a")))
                        .isInstanceOf(IOException.class);
            }
            Eventually.holds(() -> server.server.connections().size() == 0);
            assertThat(log.lines().stream().filter(line -> line.contains("connection closed after an error")))
                    .hasSizeLessThan(ranges);
        }
    }

    /// The second begins when the socket has taken the rest of the first.
    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void aRangeBehindAnUnreadOneThatFailsAtItsBeginGivesAllBack(HttpOptions.HandlerKind kind) throws IOException {
        AtomicInteger steps = new AtomicInteger();
        MemoryStore failing = new GeneratedStore(new byte[10_000], 1_000_000);
        failing.beforeEach = () -> {
            if (steps.incrementAndGet() >= 1_500) {
                throw new IllegalStateException("planted by the test");
            }
        };
        try (TestServer server =
                        new TestServer(failing, HttpOptions.onFreePort().withHandler(kind, 2, 16));
                RawClient client = new RawClient(server.server.port(), 4_096)) {
            client.send(get("/v0/entities?start=a&limit=1497") + get("/v0/entities?start=a"));
            assertThat(client.read().status()).isEqualTo(200);
            assertThatThrownBy(client::read).isInstanceOf(IOException.class);
            Eventually.holds(() -> failing.openCursors.get() == 0);
            Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
        }
    }

    /// It gets no chunks: all that could tell it is how the connection ends.
    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void anErrorHalfWayResetsTheConnectionOfAnHttp10Client(HttpOptions.HandlerKind kind) throws IOException {
        for (int failingStep : new int[] {4, 500}) { // while the first slice is sent, and while a later one is
            AtomicInteger steps = new AtomicInteger();
            MemoryStore failing = new GeneratedStore(new byte[10_000], 1_000_000);
            failing.beforeEach = () -> {
                if (steps.incrementAndGet() == failingStep) {
                    throw new IllegalStateException("planted by the test");
                }
            };
            try (TestServer server =
                            new TestServer(failing, HttpOptions.onFreePort().withHandler(kind, 2, 16));
                    RawClient client = server.connect()) {
                client.send("GET /v0/entities?start=a HTTP/1.0\r\n\r\n");
                assertThatThrownBy(client::read, "step %d", failingStep).isInstanceOf(IOException.class);
                Eventually.holds(() -> failing.openCursors.get() == 0);
            }
        }
    }

    /// The selector waits for its connections when the sweeper cuts the only one.
    @Test
    void aRangeThatTakesAnHttp10ClientTooLongEndsInAReset() throws IOException {
        MemoryStore endless = new GeneratedStore(new byte[10_000], 1_000_000);
        try (TestServer server =
                        new TestServer(endless, HttpOptions.onFreePort().withAnswerTimeout(500));
                RawClient slow = new RawClient(server.server.port(), 4_096)) {
            slow.send("GET /v0/entities?start=a HTTP/1.0\r\n\r\n");
            Eventually.holds(() -> endless.openCursors.get() == 1);
            Eventually.holds(() -> endless.openCursors.get() == 0);
            assertThatThrownBy(slow::read).isInstanceOf(IOException.class);
        }
    }

    @Test
    void anErrorAtTheStartIs500() throws IOException {
        MemoryStore failing = abc();
        AtomicInteger steps = new AtomicInteger();
        failing.beforeEach = () -> {
            if (steps.incrementAndGet() == 2) {
                throw new IllegalStateException("planted by the test");
            }
        };
        try (TestServer server = new TestServer(failing);
                RawClient client = server.connect()) {
            assertThat(client.ask(get("/v0/entities?start=a")).status()).isEqualTo(500);
            assertThat(client.ask(get("/v0/entities?start=d")).text()).isEqualTo("d\nvalue of d");
            Eventually.holds(() -> failing.openCursors.get() == 0);
            Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
        }
    }

    @Test
    void valuesOfEverySizeAroundTheBufferAreFramedRight() throws IOException {
        MemoryStore store = new MemoryStore();
        List<byte[]> expected = new ArrayList<>();
        Random random = new Random(7);
        for (int i = 0; i < 400; i++) {
            int buffers = 1 + i % 3;
            int size =
                    i % 4 == 0 ? random.nextInt(200) : Math.max(0, buffers * RangeStream.BUFFER_BYTES / 2 - 40 + i / 4);
            byte[] value = new byte[size];
            random.nextBytes(value);
            byte[] key = bytes(String.format("key%03d", i));
            store.put(key, value);
            ByteArrayOutputStream chunk = new ByteArrayOutputStream();
            chunk.writeBytes(key);
            chunk.write('\n');
            chunk.writeBytes(value);
            expected.add(chunk.toByteArray());
        }
        try (TestServer server = new TestServer(store);
                RawClient client = server.connect()) {
            client.send(get("/v0/entities?start=a"));
            for (int i = 0; i < 3; i++) {
                client.line();
            }
            assertThat(client.chunks()).containsExactlyElementsOf(expected);
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            expected.forEach(all::writeBytes);
            assertThat(client.ask("GET /v0/entities?start=a HTTP/1.0\r\n\r\n").body())
                    .isEqualTo(all.toByteArray());
        }
    }

    @Test
    void unreadRangesOverLargeValuesHoldOneSmallBufferEach() throws IOException {
        int clients = 80;
        MemoryStore large = new GeneratedStore(new byte[1 << 20], 20);
        List<RawClient> unread = new ArrayList<>();
        try (TestServer server = new TestServer(large)) {
            for (int i = 0; i < clients; i++) {
                RawClient client = new RawClient(server.server.port(), 4_096);
                unread.add(client);
                client.send(get("/v0/entities?start=a"));
                assertThat(client.line()).isEqualTo("HTTP/1.1 200 OK");
            }
            Eventually.holds(() -> large.openCursors.get() == clients);
            assertThat(server.server.budget().bytesTaken())
                    .isLessThanOrEqualTo(clients * (RangeStream.BUFFER_BYTES + 100L));
            RawClient first = unread.getFirst();
            first.line();
            first.line();
            assertThat(first.chunks())
                    .hasSize(20)
                    .allMatch(chunk -> chunk.length == (1 << 20) + "key000000001\n".length());
        } finally {
            for (RawClient client : unread) {
                client.close();
            }
        }
    }

    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void aRangeOverDeletedEntriesGivesWayToOthers(HttpOptions.HandlerKind kind) throws IOException {
        AtomicBoolean othersAnswered = new AtomicBoolean();
        AtomicInteger turns = new AtomicInteger();
        MemoryStore deleted = new GeneratedStore(new byte[0], 0) {
            @Override
            public RangeCursor range(byte[] start, byte[] endOrNull) {
                return new ForwardingCursor(super.range(start, endOrNull)) {
                    private long passed;

                    @Override
                    public Step step(int recordsMax) {
                        assertThat(recordsMax).as("records in one turn").isBetween(1, 10_000);
                        turns.incrementAndGet();
                        passed += recordsMax;
                        return othersAnswered.get() ? Step.END : Step.NOT_YET;
                    }

                    @Override
                    public long recordsPassed() {
                        return passed;
                    }
                };
            }
        };
        try (TestServer server = new TestServer(
                        deleted, HttpOptions.onFreePort().withSelectors(1).withHandler(kind, 1, 16));
                RawClient client = server.connect();
                RawClient other = server.connect()) {
            client.send(get("/v0/entities?start=a"));
            Eventually.holds(() -> turns.get() > 10);
            for (int i = 0; i < 20; i++) {
                assertThat(other.ask(get("/v0/entity?id=a")).status()).isEqualTo(404);
            }
            othersAnswered.set(true);
            assertThat(client.read().body()).isEmpty();
            assertThat(client.ask(get("/v0/status")).status()).isEqualTo(200);
            Eventually.holds(() -> deleted.openCursors.get() == 0);
        }
    }

    @Test
    void aRangeThatIsTakenTooSlowlyIsCutThoughItMoves() throws Exception {
        MemoryStore endless = new GeneratedStore(new byte[10_000], 1_000_000);
        try (TestServer server =
                        new TestServer(endless, HttpOptions.onFreePort().withAnswerTimeout(1_500));
                RawClient slow = new RawClient(server.server.port(), 4_096)) {
            slow.send(get("/v0/entities?start=a"));
            for (int i = 0; i < 3; i++) {
                slow.line();
            }
            assertThatThrownBy(() -> {
                        for (int i = 0; i < 1_000; i++) {
                            slow.chunk();
                            Thread.sleep(20);
                        }
                    })
                    .isInstanceOf(IOException.class);
            Eventually.holds(() -> endless.openCursors.get() == 0);
            Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
        }
    }

    /// Its slices are read by other threads, and nearly all of the time one is.
    @ParameterizedTest
    @EnumSource(HttpOptions.HandlerKind.class)
    void aRangeThatIsReadForLongerThanItsTimeIsCutThoughItsClientTakesItWithoutABreak(HttpOptions.HandlerKind kind)
            throws IOException {
        MemoryStore slow = new GeneratedStore(new byte[10_000], 300) {
            @Override
            public boolean readsWaitForDisk() {
                return true;
            }
        };
        slow.beforeEach = () -> LockSupport.parkNanos(10_000_000); // the disk's time
        HttpOptions options = HttpOptions.onFreePort().withHandler(kind, 2, 16).withAnswerTimeout(200);
        try (TestServer server = new TestServer(slow, options);
                RawClient client = server.connect()) {
            client.send(get("/v0/entities?start=a"));
            assertThatThrownBy(client::read).isInstanceOf(IOException.class);
            Eventually.holds(() -> slow.openCursors.get() == 0);
            Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
        }
    }

    /// A store whose ranges have `count` entries that are made as they are read.
    private static class GeneratedStore extends MemoryStore {
        private final byte[] value;
        private final long count;

        GeneratedStore(byte[] value, long count) {
            this.value = value;
            this.count = count;
        }

        @Override
        public RangeCursor range(byte[] start, byte[] endOrNull) {
            openCursors.incrementAndGet();
            return new PlainCursor() {
                private long at;
                private boolean open = true;

                @Override
                boolean advance() {
                    beforeEach.run();
                    return ++at <= count;
                }

                @Override
                public byte[] key() {
                    return bytes(String.format("key%09d", at));
                }

                @Override
                public byte[] value() {
                    return value;
                }

                @Override
                public void close() {
                    if (open) {
                        open = false;
                        openCursors.decrementAndGet();
                    }
                }
            };
        }
    }
}
