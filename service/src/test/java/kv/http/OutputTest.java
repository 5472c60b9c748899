package kv.http;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class OutputTest {
    private final Output out = new Output(512);
    private final Request request = new Request(new MemoryBudget(1 << 20).account());

    @BeforeEach
    void aRequest() {
        request.clear();
    }

    private String copied() {
        return new String(out.bytes(), 0, out.length(), US_ASCII);
    }

    @Test
    void aTextFollowsItsHead() {
        out.text(new byte[] {'a', 'b'}, "text/plain", request);
        assertThat(copied()).isEqualTo("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\n");
        assertThat(out.large()).containsExactly('a', 'b');
    }

    /// Or the system would hold the head back for 200 ms, to fill a packet with what never comes.
    @Test
    void nothingFollowsTheHeadOfAnEmptyText() {
        out.text(new byte[0], "text/plain", request);
        assertThat(copied()).isEqualTo("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Type: text/plain\r\n\r\n");
        assertThat(out.large()).isNull();
    }
}
