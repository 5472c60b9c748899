package kv.http;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// The few questions that reading HTTP asks of a stretch `[from, to)` of bytes.
final class Ascii {
    /// RFC 9110, 5.6.2: the characters of a method or a header's name
    private static final boolean[] TOKEN = new boolean[256];

    /// RFC 3986, 3.2.2: those of a registered name; a percent sign has two hexadecimal digits behind it
    private static final boolean[] NAME = new boolean[256];

    static {
        for (char c = '0'; c <= 'z'; c++) {
            TOKEN[c] = Character.isLetterOrDigit(c);
            NAME[c] = Character.isLetterOrDigit(c);
        }
        for (char c : "-._~!$&'()*+,;=".toCharArray()) {
            NAME[c] = true;
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

    /// True for what a Host header may hold: a name or an address, which may be empty, and perhaps a colon with
    /// the digits of a port (RFC 9110, 7.2; RFC 3986, 3.2.2). An address with colons stands in brackets.
    static boolean isHost(byte[] b, int from, int to) {
        int end = from < to && b[from] == '[' ? endOfAddress(b, from + 1, to) : endOfName(b, from, to);
        if (end < 0 || end < to && b[end] != ':') {
            return false;
        }
        for (int i = end + 1; i < to; i++) {
            if (b[i] < '0' || b[i] > '9') {
                return false;
            }
        }
        return true;
    }

    /// The offset behind the bracket that ends an address, or -1.
    private static int endOfAddress(byte[] b, int from, int to) {
        int colons = 0;
        for (int i = from; i < to; i++) {
            if (b[i] == ']') {
                return colons >= (b[from] == 'v' || b[from] == 'V' ? 0 : 2) && i > from ? i + 1 : -1;
            }
            if (b[i] == ':') {
                colons++;
            } else if (!NAME[b[i] & 0xff]) {
                return -1;
            }
        }
        return -1;
    }

    /// The offset of the first byte that belongs to no name, or -1 when a percent sign lacks its digits.
    private static int endOfName(byte[] b, int from, int to) {
        for (int i = from; i < to; i++) {
            if (b[i] == '%') {
                if (i + 2 >= to || !isHexDigit(b[i + 1]) || !isHexDigit(b[i + 2])) {
                    return -1;
                }
                i += 2;
            } else if (!NAME[b[i] & 0xff]) {
                return i;
            }
        }
        return to;
    }

    private static boolean isHexDigit(byte b) {
        return b >= 0 && Character.digit(b, 16) >= 0;
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
