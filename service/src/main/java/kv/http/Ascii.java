package kv.http;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// The few questions that reading HTTP asks of a stretch `[from, to)` of bytes.
final class Ascii {
    /// RFC 9110, 5.6.2: the characters of a method or a header's name
    private static final boolean[] TOKEN = new boolean[256];

    /// RFC 3986, 3.2: those of a host and a port, each for itself
    private static final boolean[] HOST = new boolean[256];

    static {
        for (char c = '0'; c <= 'z'; c++) {
            TOKEN[c] = Character.isLetterOrDigit(c);
            HOST[c] = Character.isLetterOrDigit(c);
        }
        for (char c : "-._~%!$&'()*+,;=:[]".toCharArray()) {
            HOST[c] = true;
        }
        for (char c : "!#$%&'*+-.^_`|~".toCharArray()) {
            TOKEN[c] = true;
        }
    }

    private Ascii() {}

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    static boolean isToken(byte b) {
        return TOKEN[b & 0xff];
    }

    static boolean isHost(byte[] b, int from, int to) {
        for (int i = from; i < to; i++) {
            if (!HOST[b[i] & 0xff]) {
                return false;
            }
        }
        return true;
    }

    static boolean isControl(byte b) {
        return b >= 0 && b < ' ' || b == 0x7f;
    }

    /// The offset of the next line feed, or -1.
    static int lineEnd(byte[] b, int from, int to) {
        for (int i = from; i < to; i++) {
            if (b[i] == '\n') {
                return i;
            }
        }
        return -1;
    }

    static int skipSpace(byte[] b, int from, int to) {
        int at = from;
        while (at < to && (b[at] == ' ' || b[at] == '\t')) {
            at++;
        }
        return at;
    }

    static int trimSpace(byte[] b, int from, int to) {
        int end = to;
        while (end > from && (b[end - 1] == ' ' || b[end - 1] == '\t')) {
            end--;
        }
        return end;
    }

    static boolean equal(byte[] b, int from, int to, byte[] expected) {
        return Arrays.equals(b, from, to, expected, 0, expected.length);
    }

    static boolean equalIgnoringCase(byte[] b, int from, int to, byte[] lowerCase) {
        if (to - from != lowerCase.length) {
            return false;
        }
        for (int i = 0; i < lowerCase.length; i++) {
            int c = b[from + i];
            if ((c >= 'A' && c <= 'Z' ? c | 0x20 : c) != lowerCase[i]) {
                return false;
            }
        }
        return true;
    }
}
