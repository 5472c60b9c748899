package kv.http;

import java.util.Arrays;

/// From the raw bytes of a query string to a key.
///
/// A key is bytes: `%XX` stands for one byte, everything else for itself, `+` too. So two different byte
/// strings can never become the same key, which they can when a query string is decoded to characters first
/// (four-byte UTF-8 through a decoder of three-byte sequences, `+` as a space).
final class RequestKey {
    static final int KEY_BYTES_MAX = 1024;
    private static final long ABSENT = -1;

    private RequestKey() {}

    /// Where the value of parameter `name` stands in the query `[from, to)`: start in the high half, end in the
    /// low one; or a negative number when there is none. The first one counts.
    static long find(byte[] name, byte[] query, int from, int to) {
        int at = from;
        while (at < to) {
            int end = at;
            while (end < to && query[end] != '&') {
                end++;
            }
            int equals = at + name.length;
            if (equals < end && query[equals] == '=' && Arrays.equals(query, at, equals, name, 0, name.length)) {
                return (long) (equals + 1) << 32 | end;
            }
            at = end + 1;
        }
        return ABSENT;
    }

    /// The key that `raw[from, to)` stands for, or null after a rejection of `request`: 400 for a malformed
    /// escape, 414 for more than [#KEY_BYTES_MAX] bytes.
    static byte[] decode(byte[] raw, int from, int to, Request request) {
        int length = 0;
        for (int at = from; at < to; at++, length++) {
            if (raw[at] == '%') {
                if (at + 2 >= to || hex(raw[at + 1]) < 0 || hex(raw[at + 2]) < 0) {
                    request.reject(Answer.MALFORMED_ESCAPE);
                    return null;
                }
                at += 2;
            }
        }
        if (length > KEY_BYTES_MAX) {
            request.reject(Answer.KEY_TOO_LONG);
            return null;
        }
        byte[] key = request.keyRoom(length);
        if (length == to - from) {
            System.arraycopy(raw, from, key, 0, length);
            return key;
        }
        for (int i = 0, at = from; i < length; i++, at++) {
            if (raw[at] == '%') {
                key[i] = (byte) (hex(raw[at + 1]) << 4 | hex(raw[at + 2]));
                at += 2;
            } else {
                key[i] = raw[at];
            }
        }
        return key;
    }

    private static int hex(byte digit) {
        return Character.digit(digit, 16);
    }
}
