package kv.http;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What a connection says means the same however the network cuts it into pieces.
class RequestReaderTest {
    private static final String REQUESTS = "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
            + "GET /v0/entity?id=%E2%82%AC HTTP/1.1\r\nHost: x\r\n\r\n"
            + "PUT /v0/entity?id=b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n"
            + "10\r\n0123456789abcdef\r\n0\r\nA: b\r\n\r\n"
            + "\r\nDELETE /v0/entity?id=c HTTP/1.1\nHost: x\n\n"
            + "POST /v0/entity?id=d HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nGET "
            + "PUT /v0/entity?id=e HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n" + "v".repeat(40)
            + "PUT /v0/entity?id=f HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n28\r\n" + "v".repeat(40)
            + "\r\n0\r\n\r\n"
            + "GET /v0/entities?start=g&end=h HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
            + "GET /v0/status HTTP/1.1\r\nHost: x\r\nConnection: foo , CLOSE\r\n\r\n";

    private static final List<String> MEANING = List.of(
            "PUT a null hello kept",
            "GET \u00e2\u0082\u00ac null  kept",
            "PUT b null abc0123456789abcdef kept",
            "DELETE c null  kept",
            "ENTITY_METHOD kept",
            "VALUE_TOO_LARGE kept",
            "VALUE_TOO_LARGE kept",
            "GET g h  kept",
            "GET null null  closed");

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void nothingIsKeptOfALargeValueThatWasReleased(boolean inPieces) {
        RequestReader reader = new RequestReader(new MemoryBudget(1 << 20).account(), 1 << 19, 20);
        byte[] put = ("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n" + "v".repeat(300_000))
                .getBytes(ISO_8859_1);
        RequestReader.Event event = RequestReader.Event.MORE;
        int step = inPieces ? 10_000 : put.length;
        for (int at = 0; event == RequestReader.Event.MORE; at = reader.position()) {
            event = reader.read(put, at, Math.min(put.length, at + step));
        }
        assertThat(reader.request().value).hasSize(300_000);
        reader.release();
        assertThat(reader.request().value).isEmpty();
    }

    /// The requests that come out when `pieces` go in one after the other.
    private static List<String> read(List<byte[]> pieces) {
        RequestReader reader = new RequestReader(new MemoryBudget(1 << 20).account(), 20, 20);
        List<String> requests = new ArrayList<>();
        byte[] kept = {};
        for (byte[] piece : pieces) {
            byte[] b = new byte[kept.length + piece.length];
            System.arraycopy(kept, 0, b, 0, kept.length);
            System.arraycopy(piece, 0, b, kept.length, piece.length);
            int at = 0;
            while (at < b.length) {
                RequestReader.Event event = reader.read(b, at, b.length);
                at = reader.position();
                if (event == RequestReader.Event.MORE) {
                    break;
                }
                requests.add(describe(event, reader.request()));
            }
            kept = Arrays.copyOfRange(b, at, b.length);
        }
        assertThat(kept).isEmpty();
        return requests;
    }

    private static String describe(RequestReader.Event event, Request r) {
        String connection = r.keepAlive ? " kept" : " closed";
        return event == RequestReader.Event.REJECTED
                ? r.rejection + connection
                : r.method + " " + text(r.key) + " " + text(r.end) + " " + text(r.value) + connection;
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "null" : new String(bytes, ISO_8859_1);
    }

    @Test
    void requestsInOnePiece() {
        assertThat(read(List.of(REQUESTS.getBytes(ISO_8859_1)))).isEqualTo(MEANING);
    }

    @Test
    void requestsCutInTwoAtEveryByte() {
        byte[] all = REQUESTS.getBytes(ISO_8859_1);
        for (int cut = 1; cut < all.length; cut++) {
            List<byte[]> pieces = List.of(Arrays.copyOf(all, cut), Arrays.copyOfRange(all, cut, all.length));
            assertThat(read(pieces)).as("cut at byte " + cut).isEqualTo(MEANING);
        }
    }

    @Test
    void requestsByteByByte() {
        List<byte[]> pieces = new ArrayList<>();
        for (byte b : REQUESTS.getBytes(ISO_8859_1)) {
            pieces.add(new byte[] {b});
        }
        assertThat(read(pieces)).isEqualTo(MEANING);
    }

    @Test
    void requestsInRandomPieces() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        byte[] all = REQUESTS.getBytes(ISO_8859_1);
        for (int round = 0; round < 2_000; round++) {
            List<byte[]> pieces = new ArrayList<>();
            for (int at = 0; at < all.length; ) {
                int end = Math.min(all.length, at + 1 + random.nextInt(1 + random.nextInt(100)));
                pieces.add(Arrays.copyOfRange(all, at, end));
                at = end;
            }
            assertThat(read(pieces)).as("seed " + seed + ", round " + round).isEqualTo(MEANING);
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(ISO_8859_1);
    }

    private static RequestReader reader(long memoryBytes, int valueBytesMax) {
        return new RequestReader(new MemoryBudget(memoryBytes).account(), valueBytesMax, 20);
    }

    /// What was kept of them would pass for half a request: its time would run out, and a stop would wait for it.
    @Test
    void nothingIsKeptOfEmptyLinesBeforeARequest() {
        RequestReader reader = reader(1 << 20, 20);
        for (String lines : List.of("\r\n", "\n", "\r", "\r\n\r\n")) {
            byte[] b = bytes(lines);
            assertThat(reader.read(b, 0, b.length)).isEqualTo(RequestReader.Event.MORE);
            assertThat(reader.position()).isEqualTo(b.length);
        }
        byte[] half = bytes("\r\nGET /v0/status HTTP/1.1\r\n");
        assertThat(reader.read(half, 0, half.length)).isEqualTo(RequestReader.Event.MORE);
        assertThat(reader.position()).isEqualTo(2);
    }

    /// What comes out first when the first `cut` bytes go in, and then, if need be, all of them.
    private static String first(String request, int cut) {
        RequestReader reader = reader(1 << 20, 20);
        byte[] b = bytes(request);
        RequestReader.Event event = reader.read(b, 0, cut);
        if (event == RequestReader.Event.MORE) {
            event = reader.read(b, reader.position(), b.length);
        }
        return describe(event, reader.request());
    }

    private static final List<String> SINGLE = List.of(
            "GET /v0/entity?id=a HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET /v0/entity?id=b HTTP/1.1\nHost: x\n\n",
            "GET /v0/entity?id=c HTTP/1.0\r\n\r\n",
            "GET /v0/entity?id=d HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            "GET /v0/entity?id=e HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            "GET /v0/entity?id=f HTTP/1.1\r\nHost: x\r\nA: " + "y".repeat(300) + "\r\n\r\n",
            "DELETE /v0/entity?id=g HTTP/1.1\r\nHost: x\r\n\r\n",
            "POST /v0/entity?id=h HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi",
            "GET /v0/elsewhere HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET /v0/entity?id= HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET /v0/entity?id=i HTTP/1.1\r\n\r\n",
            "GET /v0/entity?id=j HTTP/1.1\r\nHost: x\r\nExpect: much\r\n\r\n",
            "PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
            "PUT /v0/entity?id=l HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nhel",
            "PUT /v0/entity?id=m HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
            "PUT /v0/entity?id=n HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            "PUT /v0/entity?id=o HTTP/1.1\r\nHost: x\r\nContent-Length: 21\r\n\r\n" + "v".repeat(21));

    /// All that a reader makes of one request, which it gets in one piece or cut at `cut`.
    private static String next(RequestReader reader, byte[] b, int cut) {
        RequestReader.Event event = reader.read(b, 0, cut);
        if (event == RequestReader.Event.MORE) {
            event = reader.read(b, reader.position(), b.length);
        }
        String told = event == RequestReader.Event.MORE ? "more" : describe(event, reader.request());
        if (event == RequestReader.Event.REJECTED && reader.position() < b.length) { // the rest is dropped
            event = reader.read(b, reader.position(), b.length);
        }
        return told + " " + event + " " + reader.position();
    }

    private static String alone(byte[] b) {
        return next(reader(1 << 20, 20), b, b.length);
    }

    @Test
    void whatAConnectionSaysAgainBehindAnotherTargetMeansTheSame() {
        for (String one : SINGLE) {
            for (String other : SINGLE) {
                RequestReader reader = reader(1 << 20, 20);
                for (String request : List.of(one, one, one, other, other, one, other)) {
                    byte[] b = bytes(request);
                    assertThat(next(reader, b, b.length)).as(one + other).isEqualTo(alone(b));
                }
            }
        }
    }

    @Test
    void aHeadThatIsKnownIsReadTheSameInWhateverTwoPiecesItComes() {
        for (String request : SINGLE) {
            byte[] b = bytes(request);
            RequestReader reader = reader(1 << 20, 20);
            for (int cut = 0; cut <= b.length; cut++) {
                assertThat(next(reader, b, cut)).as(request + "cut at " + cut).isEqualTo(alone(b));
            }
        }
    }

    /// What is known is a stretch of bytes: one that differs in a single byte may say something else.
    @Test
    void aHeadThatDiffersInOneByteFromAKnownOneIsReadAnew() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        String characters = "\r\n\t :0159Aacx\u00e9";
        for (int round = 0; round < 20_000; round++) {
            String request = SINGLE.get(random.nextInt(SINGLE.size()));
            byte[] known = bytes(request);
            byte[] changed = known.clone();
            changed[random.nextInt(changed.length)] = (byte) characters.charAt(random.nextInt(characters.length()));
            RequestReader reader = reader(1 << 20, 20);
            next(reader, known, known.length);
            next(reader, known, known.length);
            assertThat(next(reader, changed, changed.length))
                    .as("seed " + seed + ", round " + round + ", " + request)
                    .isEqualTo(alone(changed));
        }
    }

    @Test
    void aHeadOverItsLimitIsRefusedInOnePieceAsInTwo() {
        int max = RequestReader.HEAD_BYTES_MAX;
        String start = "GET /v0/status HTTP/1.1\r\nHost: x\r\nX: ";
        String end = "\r\n\r\n";
        String longest = start + "y".repeat(max - start.length() - end.length()) + end;
        String tooLong = start + "y".repeat(max + 1 - start.length() - end.length()) + end;
        String lineTooLong = "GET /v0/entity?id=" + "k".repeat(max) + " HTTP/1.1\r\nHost: x" + end;
        for (int cut : new int[] {1, 100, max - 1, max}) {
            assertThat(first(longest, cut)).as("cut at " + cut).isEqualTo("GET null null  kept");
            assertThat(first(tooLong, cut)).as("cut at " + cut).isEqualTo("HEAD_TOO_LARGE closed");
            assertThat(first(lineTooLong, cut)).as("cut at " + cut).isEqualTo("TARGET_TOO_LONG closed");
        }
        assertThat(first(tooLong, tooLong.length())).isEqualTo("HEAD_TOO_LARGE closed");
        assertThat(first(lineTooLong, lineTooLong.length())).isEqualTo("TARGET_TOO_LONG closed");
        assertThat(first(tooLong + longest, tooLong.length() + longest.length()))
                .isEqualTo("HEAD_TOO_LARGE closed");
    }

    /// To come again would be of no use.
    @ParameterizedTest
    @ValueSource(strings = {"PUT /v0/entity?id=a", "POST /v0/entities/batch"})
    void aBodyThatMemoryHasNeverRoomForIsTooLarge(String target) {
        for (String framing : List.of("Content-Length: 2000", "Transfer-Encoding: chunked")) {
            RequestReader reader = new RequestReader(new MemoryBudget(1_999).account(), 1 << 20, 1 << 20);
            byte[] b = bytes(target + " HTTP/1.1\r\nHost: x\r\n" + framing + "\r\n\r\n7d0\r\n" + "v".repeat(2_000));
            RequestReader.Event event = reader.read(b, 0, b.length);
            if (event == RequestReader.Event.MORE) {
                event = reader.read(b, reader.position(), b.length);
            }
            assertThat(describe(event, reader.request())).matches("(VALUE|BATCH)_TOO_LARGE (kept|closed)");
        }
    }

    @Test
    void ofARefusedBodyAsMuchIsDroppedHoweverMuchOfItCameBefore() {
        int length = 20 << 20;
        MemoryBudget memory = new MemoryBudget(length);
        memory.account().share().growTo(11 << 20); // of the rest a body that doubles gets eight
        RequestReader reader = new RequestReader(memory.account(), length, 20);
        byte[] head = bytes("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: " + length + "\r\n\r\n");
        assertThat(reader.read(head, 0, head.length)).isEqualTo(RequestReader.Event.MORE);
        byte[] piece = new byte[1 << 20];
        List<String> refusals = new ArrayList<>();
        for (int sent = 0; sent < length; sent += piece.length) {
            RequestReader.Event event = reader.read(piece, 0, piece.length);
            if (event != RequestReader.Event.MORE) {
                refusals.add(describe(event, reader.request()));
            }
        }
        assertThat(refusals).containsExactly("MEMORY_FULL kept");
        byte[] next = bytes("GET /v0/entity?id=b HTTP/1.1\r\nHost: x\r\n\r\n");
        assertThat(reader.read(next, 0, next.length)).isEqualTo(RequestReader.Event.REQUEST);
    }

    @Test
    void randomDamageNeverThrowsAndNeverHoldsMemory() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        byte[] all = REQUESTS.getBytes(ISO_8859_1);
        for (int round = 0; round < 20_000; round++) {
            byte[] damaged = all.clone();
            for (int i = 0; i <= random.nextInt(4); i++) {
                damaged[random.nextInt(all.length)] = (byte) random.nextInt(256);
            }
            MemoryBudget budget = new MemoryBudget(1 << 20);
            RequestReader reader = new RequestReader(budget.account(), 20, 20);
            int at = 0;
            try {
                while (at < damaged.length) {
                    RequestReader.Event event = reader.read(damaged, at, damaged.length);
                    assertThat(reader.position()).isBetween(at, damaged.length);
                    at = reader.position();
                    if (event == RequestReader.Event.MORE || !reader.request().keepAlive) {
                        break;
                    }
                }
            } catch (RuntimeException e) {
                throw new AssertionError("seed " + seed + ", round " + round, e);
            }
            reader.release();
            assertThat(budget.bytesTaken())
                    .as("seed " + seed + ", round " + round)
                    .isZero();
        }
    }
}
