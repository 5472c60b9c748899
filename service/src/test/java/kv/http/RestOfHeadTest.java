package kv.http;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/// Which heads are known when they come again: that a known one means the same is shown by [RequestReaderTest].
class RestOfHeadTest {
    private final Request request = new Request(new MemoryBudget(1 << 20).account());

    /// True when what is behind the target was known before.
    private boolean isKnown(String head) {
        byte[] b = head.getBytes(ISO_8859_1);
        assertThat(RequestParser.parse(b, 0, b.length, request)).isEqualTo(b.length);
        return request.restAt < 0;
    }

    private static String get(int bytesBehindTarget) {
        String start = " HTTP/1.1\r\nHost: x\r\nA: ";
        return "GET /v0/entity?id=a" + start + "y".repeat(bytesBehindTarget - start.length() - 4) + "\r\n\r\n";
    }

    private static String put(int length) {
        return "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: " + length + "\r\n\r\n";
    }

    @Test
    void theFirstOfAConnectionIsNotRememberedAndTheSecondIs() {
        assertThat(isKnown(get(50))).isFalse();
        assertThat(isKnown(get(50))).isFalse();
        assertThat(isKnown(get(50))).isTrue();
        assertThat(isKnown(get(50).replace("id=a", "id=another"))).isTrue();
        assertThat(isKnown(get(50).replace("GET", "DELETE"))).isTrue();
    }

    @Test
    void eachOfAPutAndOfTheOthersIsRememberedBesideTheOther() {
        for (int i = 0; i < 2; i++) {
            assertThat(isKnown(get(50))).isFalse();
            assertThat(isKnown(put(100))).isFalse();
            isKnown(get(50));
            isKnown(put(100));
            assertThat(isKnown(get(50))).isTrue();
            assertThat(isKnown(put(100))).isTrue();
            isKnown(get(60)); // and now these are known instead
            isKnown(put(10));
        }
    }

    @Test
    void longerOnesThanItsLimitAreReadAnewEachTime() {
        isKnown(get(50));
        for (int bytes : new int[] {64, 65, 40, RestOfHead.BYTES_MAX}) {
            assertThat(isKnown(get(bytes))).as("%d bytes", bytes).isFalse();
            assertThat(isKnown(get(bytes))).as("%d bytes", bytes).isTrue();
        }
        for (int i = 0; i < 3; i++) {
            assertThat(isKnown(get(RestOfHead.BYTES_MAX + 1))).isFalse();
        }
    }

    @Test
    void whatWasRefusedIsNotRemembered() {
        isKnown(get(50));
        String refused = get(50).replace("/v0/entity", "/v0/elsewhere");
        for (int i = 0; i < 3; i++) {
            assertThat(isKnown(refused)).isFalse();
            assertThat(request.rejection).isEqualTo(Answer.UNKNOWN_PATH);
        }
    }

    @Test
    void requestsThatComeTogetherAreFoundOneBehindTheOther() {
        byte[] b = get(50).repeat(3).getBytes(ISO_8859_1);
        int at = 0;
        for (int i = 0; i < 3; i++) {
            at = RequestParser.parse(b, at, b.length, request);
            assertThat(at).isEqualTo((i + 1) * b.length / 3);
            assertThat(request.restAt < 0).isEqualTo(i == 2);
            assertThat(request.rejection).isNull();
        }
    }
}
