package kv.http;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import kv.lsm.RangeCursor;
import one.nio.net.Session;
import one.nio.net.Socket;

/// The answer to a range read, produced as fast as the client takes it: a buffer is filled from the cursor when the socket
/// has room, so a range of any size needs one small buffer of memory.
///
/// ```
/// HTTP/1.1: one chunk per entry      HTTP/1.0: the same without the framing, and the end is the end of the connection
/// 7 CRLF  key LF value  CRLF
/// 0 CRLF CRLF
/// ```
///
/// One call of [#write] sends a bounded slice, so that a range read does not hold up the other connections of its selector.
/// When reading fails half way the connection is cut without the last chunk: the client sees that the answer is incomplete.
final class RangeStream extends Session.QueueItem {
    static final int BUFFER_BYTES = 32 << 10;
    private static final int SLICE_BYTES = 4 * BUFFER_BYTES;
    private static final byte[] HEAD = ascii("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    private static final byte[] HEAD_CLOSED =
            ascii("HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
    private static final byte[] HEAD_HTTP10 = ascii("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    private static final byte[] LAST_CHUNK = ascii("0\r\n\r\n");
    private static final byte[] HEX = ascii("0123456789abcdef");

    private final RangeCursor cursor;
    private final MemoryBudget budget;
    private final boolean chunked;
    private byte[] buffer = new byte[BUFFER_BYTES];
    private int start;
    private int end;
    private boolean cursorEnded;
    private boolean released;

    /// Takes over the cursor and [#BUFFER_BYTES] already taken from `budget`. Reads the first entries, so that an error
    /// that shows at once can still become an answer.
    RangeStream(RangeCursor cursor, MemoryBudget budget, Request request) {
        this.cursor = cursor;
        this.budget = budget;
        this.chunked = request.http11;
        byte[] head = !request.http11 ? HEAD_HTTP10 : request.keepAlive ? HEAD : HEAD_CLOSED;
        append(head, head.length);
        fill();
    }

    /// True when the next [#write] has to read from the store first.
    boolean needsStore() {
        return start == end && !cursorEnded;
    }

    private void fill() {
        while (end < BUFFER_BYTES / 2 && !cursorEnded) {
            if (cursor.next()) {
                entry(cursor.key(), cursor.value());
            } else {
                cursorEnded = true;
                if (chunked) {
                    append(LAST_CHUNK, LAST_CHUNK.length);
                }
            }
        }
    }

    private void entry(byte[] key, byte[] value) {
        int length = key.length + 1 + value.length;
        ensure(length + 12);
        if (chunked) {
            int digits = (35 - Integer.numberOfLeadingZeros(length)) / 4;
            for (int i = digits - 1; i >= 0; i--) {
                buffer[end++] = HEX[length >>> 4 * i & 15];
            }
            lineEnd();
        }
        append(key, key.length);
        buffer[end++] = '\n';
        append(value, value.length);
        if (chunked) {
            lineEnd();
        }
    }

    private void lineEnd() {
        buffer[end++] = '\r';
        buffer[end++] = '\n';
    }

    private void append(byte[] source, int count) {
        ensure(count);
        System.arraycopy(source, 0, buffer, end, count);
        end += count;
    }

    private void ensure(int count) {
        if (end + count > buffer.length) {
            buffer = Arrays.copyOf(buffer, end + count);
        }
    }

    @Override
    public int write(Socket socket) throws IOException {
        int sent = 0;
        while (sent < SLICE_BYTES) {
            if (start == end) {
                start = 0;
                end = 0;
                if (buffer.length > BUFFER_BYTES) {
                    buffer = new byte[BUFFER_BYTES]; // an unusually large entry went by
                }
                fill();
                if (end == 0) {
                    break;
                }
            }
            int written = socket.write(buffer, start, end - start, 0);
            if (written <= 0) {
                return sent > 0 ? sent : written;
            }
            start += written;
            sent += written;
        }
        return sent;
    }

    @Override
    public int remaining() {
        return start < end || !cursorEnded ? 1 : 0;
    }

    @Override
    public void release() {
        if (!released) {
            released = true;
            cursor.close();
            budget.giveBack(BUFFER_BYTES);
        }
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
