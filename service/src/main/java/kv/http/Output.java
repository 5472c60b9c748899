package kv.http;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// The answers that one pass over a connection's bytes produces, in order, before they go to the socket in one
/// write.
///
/// Answers are copied into one buffer, head and value behind each other, as long as the buffer of the thread
/// has room for that; a larger value and a streamed range follow behind it without being copied. After one of
/// those the output is full and must be flushed.
final class Output {
    /// Values up to this are copied by an output of any size.
    private static final int COPIED_BYTES_MIN = 16 << 10;
    private static final int HEAD_BYTES_MAX = 1 << 10;
    private static final int FULL_BYTES = 32 << 10;
    /// Of longer values no array is kept for the next one.
    private static final int ROOM_BYTES_MAX = 1 << 20;
    private static final byte[] OK_HTTP11 = ascii("HTTP/1.1 200 OK\r\nContent-Length: ");
    private static final byte[] OK_KEPT_HTTP10 = ascii("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: ");
    private static final byte[] OK_CLOSED = ascii("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ");
    private static final byte[] CONTENT_TYPE = ascii("\r\nContent-Type: ");
    private static final byte[] END_OF_HEAD = ascii("\r\n\r\n");
    private static final byte[] CONTINUE = ascii("HTTP/1.1 100 Continue\r\n\r\n");

    private final int copiedBytesMax;
    private byte[] bytes;
    private int length;
    /// Never empty: bytes are to follow what the buffer holds.
    private byte[] large;
    private RangeStream stream;
    private int status;
    /// For the next value, if it is as long as the last two were.
    private byte[] valueRoom = Request.NO_BYTES;
    private int lastValueBytes;
    private boolean tookRoom;

    Output(int initialBytes) {
        copiedBytesMax = Math.max(COPIED_BYTES_MIN, initialBytes - HEAD_BYTES_MAX);
        bytes = new byte[initialBytes];
    }

    void answer(Answer answer, Request request) {
        status = answer.status();
        answer.writeTo(this, request);
    }

    /// An array that the next value may be read into if it has just its length.
    byte[] valueRoom() {
        return valueRoom;
    }

    /// 200 with `value` as its body.
    void value(byte[] value, Request request) {
        head(value.length, request);
        append(END_OF_HEAD, 0, END_OF_HEAD.length);
        if (value.length <= copiedBytesMax) {
            append(value, 0, value.length);
            isRead(value);
        } else {
            large = value;
        }
    }

    /// The large body, which is then no longer this output's: whoever writes it may keep its array.
    byte[] takeLarge() {
        byte[] taken = large;
        large = null;
        tookRoom = taken == valueRoom;
        if (tookRoom) {
            valueRoom = Request.NO_BYTES;
        }
        return taken;
    }

    /// The socket has all of what [#takeLarge] gave, and nobody kept its array.
    void largeIsWritten(byte[] taken) {
        if (tookRoom) {
            valueRoom = taken;
        } else if (taken.length <= ROOM_BYTES_MAX) {
            isRead(taken);
        }
    }

    /// Nothing needs `value` any more: the next one as long as it is may find room for itself.
    private void isRead(byte[] value) {
        if (value.length == lastValueBytes && value.length != valueRoom.length) {
            valueRoom = new byte[value.length];
        }
        lastValueBytes = value.length;
    }

    /// 200 with a body of another type than a value.
    void text(byte[] body, String contentType, Request request) {
        head(body.length, request);
        append(CONTENT_TYPE, 0, CONTENT_TYPE.length);
        byte[] type = ascii(contentType);
        append(type, 0, type.length);
        append(END_OF_HEAD, 0, END_OF_HEAD.length);
        if (body.length > 0) {
            large = body;
        }
    }

    /// A stream that writes its own head.
    void stream(RangeStream newStream) {
        status = 200;
        stream = newStream;
    }

    void expectBody() {
        append(CONTINUE, 0, CONTINUE.length);
    }

    private void head(int bodyBytes, Request request) {
        status = 200;
        byte[] head = !request.keepAlive ? OK_CLOSED : request.http11 ? OK_HTTP11 : OK_KEPT_HTTP10;
        append(head, 0, head.length);
        decimal(bodyBytes);
    }

    void append(byte[] source, int from, int count) {
        ensure(count);
        System.arraycopy(source, from, bytes, length, count);
        length += count;
    }

    private void decimal(int number) {
        ensure(10);
        int digits = 1;
        for (int n = number; n >= 10; n /= 10) {
            digits++;
        }
        int n = number;
        for (int i = length + digits - 1; i >= length; i--, n /= 10) {
            bytes[i] = (byte) ('0' + n % 10);
        }
        length += digits;
    }

    private void ensure(int count) {
        if (length + count > bytes.length) {
            bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, length + count));
        }
    }

    /// The status of the last answer.
    int status() {
        return status;
    }

    boolean isEmpty() {
        return length == 0 && large == null && stream == null;
    }

    boolean isFull() {
        return length >= FULL_BYTES || large != null || stream != null;
    }

    byte[] bytes() {
        return bytes;
    }

    int length() {
        return length;
    }

    byte[] large() {
        return large;
    }

    RangeStream stream() {
        return stream;
    }

    /// A mark for [#backTo]: where the next answer starts.
    int mark() {
        return length;
    }

    /// Takes back what was written since `mark`: the answer that was begun there failed.
    void backTo(int mark) {
        length = mark;
        large = null;
        if (stream != null) {
            stream.release();
            stream = null;
        }
    }

    /// Ready for the next answers; what was handed on is not touched.
    void clear() {
        length = 0;
        large = null;
        stream = null;
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
