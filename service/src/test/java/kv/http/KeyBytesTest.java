package kv.http;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Keys are bytes: different bytes are different keys, equal bytes are one key however they were escaped.
class KeyBytesTest {
    private TestServer server;
    private RawClient client;

    @BeforeEach
    void start() throws IOException {
        server = new TestServer(new MemoryStore());
        client = server.connect();
    }

    @AfterEach
    void stop() throws IOException {
        client.close();
        server.close();
    }

    private static String escaped(byte[] key) {
        StringBuilder escaped = new StringBuilder();
        for (byte b : key) {
            escaped.append(String.format("%%%02X", b & 0xff));
        }
        return escaped.toString();
    }

    @Test
    void aPlusIsAPlusAndNotASpace() throws IOException {
        client.ask(put("/v0/entity?id=a+b", "plus"));
        client.ask(put("/v0/entity?id=a%20b", "space"));
        assertThat(client.ask(get("/v0/entity?id=a%2Bb")).text()).isEqualTo("plus");
        assertThat(client.ask(get("/v0/entity?id=a%20b")).text()).isEqualTo("space");
    }

    @Test
    void fourByteCharactersThatDifferInOneBitAreDifferentKeys() throws IOException {
        List<String> keys = new ArrayList<>();
        for (int codePoint :
                new int[] {0x1F600, 0x1F601, 0x1F640, 0x1FA00, 0x2F600, 0x10F600, 0xF600, 0x20AC, 0xE9, 0x7A}) {
            keys.add(new String(Character.toChars(codePoint)));
        }
        for (String key : keys) {
            assertThat(client.ask(put("/v0/entity?id=" + escaped(key.getBytes(UTF_8)), key.codePointAt(0) + ""))
                            .status())
                    .isEqualTo(201);
        }
        for (String key : keys) {
            String raw = new String(key.getBytes(UTF_8), ISO_8859_1);
            assertThat(client.ask(get("/v0/entity?id=" + escaped(key.getBytes(UTF_8))))
                            .text())
                    .isEqualTo(key.codePointAt(0) + "");
            assertThat(client.ask(get("/v0/entity?id=" + raw)).text())
                    .as("unescaped")
                    .isEqualTo(key.codePointAt(0) + "");
        }
    }

    @Test
    void everySingleByteIsAKeyOfItsOwn() throws IOException {
        for (int b = 0; b < 256; b++) {
            assertThat(client.ask(put("/v0/entity?id=" + escaped(new byte[] {(byte) b}), "v" + b))
                            .status())
                    .isEqualTo(201);
        }
        for (int b = 0; b < 256; b++) {
            String lowerCase = escaped(new byte[] {(byte) b}).toLowerCase();
            assertThat(client.ask(get("/v0/entity?id=" + lowerCase)).text()).isEqualTo("v" + b);
        }
    }

    @Test
    void rangesAreInUnsignedByteOrder() throws IOException {
        for (String key : new String[] {"%7f", "%80", "%ff", "a", "%00", "%f0%9f%98%80"}) {
            client.ask(put("/v0/entity?id=" + key, "v"));
        }
        assertThat(client.ask(get("/v0/entities?start=%00")).text())
                .isEqualTo(
                        "\u0000\nv" + "a\nv" + "\u007f\nv" + "\u0080\nv" + "\u00f0\u009f\u0098\u0080\nv" + "\u00ff\nv");
    }

    @Test
    void anAmpersandOrEqualsSignInAKeyIsEscaped() throws IOException {
        client.ask(put("/v0/entity?id=a%26id=b%3d", "one"));
        assertThat(client.ask(get("/v0/entity?id=a%26id%3Db=")).text()).isEqualTo("one");
        assertThat(client.ask(get("/v0/entity?id=a")).status()).isEqualTo(404);
    }
}
