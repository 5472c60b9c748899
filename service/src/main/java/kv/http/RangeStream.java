package kv.http;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.function.IntConsumer;
import kv.lsm.RangeCursor;
import one.nio.net.Session;
import one.nio.net.Socket;

/// The answer to a range read, produced as fast as the client takes it: a buffer is filled from the cursor when
/// the socket has room, and values go through it in pieces, so a range of any size over values of any size
/// needs one small buffer of heap. While it waits for its client the cursor is paused, which bounds its native
/// memory.
///
/// ```
/// HTTP/1.1: one chunk per entry
/// HTTP/1.0: the same without the framing, and the end is the end of the connection
/// 7 CRLF  key LF value  CRLF
/// 0 CRLF CRLF
/// ```
///
/// One call of [#write] sends at most [#SLICE_BYTES] and looks at no more than about [#RECORDS_PER_TURN]
/// records, also those of no entry, so that a range read does not hold up the other connections of its selector. When
/// reading fails half way the connection is cut without the last chunk: the client sees that the answer is
/// incomplete. One that gets no chunks would not ([#isHalf]), so its connection is reset.
final class RangeStream extends Session.QueueItem {
    static final int BUFFER_BYTES = 32 << 10;
    private static final int SLICE_BYTES = 4 * BUFFER_BYTES;
    /// A fraction of a millisecond, where the records are in memory.
    private static final int RECORDS_PER_TURN = 4 << 10;
    /// in hexadecimal digits, with a line end
    private static final int CHUNK_SIZE_BYTES_MAX = 10;
    private static final int LINE_END_BYTES = 2;
    private static final byte[] HEAD = ascii("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    private static final byte[] HEAD_CLOSED =
            ascii("HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
    private static final byte[] HEAD_HTTP10 = ascii("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    private static final byte[] LAST_CHUNK = ascii("0\r\n\r\n");
    private static final byte[] HEX = ascii("0123456789abcdef");

    private final RangeCursor cursor;
    private final MemoryBudget.Share memory;
    private final boolean chunked;
    private final byte[] buffer = new byte[BUFFER_BYTES];
    private int start;
    private int end;
    private int recordsLeft = RECORDS_PER_TURN;
    /// of the current entry's value, what is in the buffer or was sent; -1 when no entry is begun
    private int valueAt = -1;
    private int valueLength;
    private boolean cursorEnded;
    private boolean readElsewhere;
    /// True while [#readAhead] is at work. Guarded by this object's lock, as the next is.
    private boolean reading;
    private boolean released;
    private IntConsumer whenSent = bytes -> {};

    /// Takes over the cursor and `memory`, [#BUFFER_BYTES] that are taken. Reads the first entries, so that an
    /// error that shows at once can still become an answer.
    RangeStream(RangeCursor cursor, MemoryBudget.Share memory, Request request) {
        this.cursor = cursor;
        this.memory = memory;
        this.chunked = request.http11;
        byte[] head = !request.http11 ? HEAD_HTTP10 : request.keepAlive ? HEAD : HEAD_CLOSED;
        append(head, head.length);
        fill();
        cursor.pause();
    }

    /// @param listener told how many bytes the socket took in each turn
    void whenSent(IntConsumer listener) {
        whenSent = listener;
    }

    /// False when the end of the answer is the end of the connection.
    boolean isChunked() {
        return chunked;
    }

    /// True while the socket has not taken all of it. Under the lock of the session, as [#write] is; while
    /// [#readAhead] is at work it has not.
    boolean isHalf() {
        synchronized (this) {
            return reading || remaining() > 0;
        }
    }

    /// True when the next [#write] may read from the store: it fills what it could send.
    boolean needsStore() {
        return !cursorEnded;
    }

    /// Tells whether somebody else calls [#readAhead] between two calls of [#write], which then reads nothing.
    void isReadElsewhere(boolean elsewhere) {
        readElsewhere = elsewhere;
    }

    /// Fills the buffer if all of it was sent. Not while [#write] runs, and without the lock of the session: when
    /// that is closed meanwhile, the cursor is closed at the end of this.
    void readAhead() {
        synchronized (this) {
            if (released) {
                return;
            }
            reading = true;
        }
        try {
            if (start == end) {
                start = 0;
                end = 0;
                recordsLeft = RECORDS_PER_TURN;
                fill();
                cursor.pause();
            }
        } finally {
            endReading();
        }
    }

    private void endReading() {
        boolean wasReleased;
        synchronized (this) {
            reading = false;
            wasReleased = released;
        }
        if (wasReleased) {
            giveBack();
        }
    }

    /// Puts into the buffer what it has room for, or what this turn's records give.
    private void fill() {
        while (!cursorEnded) {
            if (valueAt >= 0) {
                if (!valueEnds()) {
                    return;
                }
            } else if (recordsLeft <= 0 || end > BUFFER_BYTES / 2) {
                return;
            } else {
                nextEntry();
            }
        }
    }

    private void nextEntry() {
        long passed = cursor.recordsPassed();
        RangeCursor.Step step = cursor.step(recordsLeft);
        recordsLeft -= 1 + (int) (cursor.recordsPassed() - passed);
        switch (step) {
            case ENTRY -> beginEntry(cursor.key());
            case END -> {
                cursorEnded = true;
                if (chunked) {
                    append(LAST_CHUNK, LAST_CHUNK.length);
                }
            }
            case NOT_YET -> {}
        }
    }

    private void beginEntry(byte[] key) {
        assert end + CHUNK_SIZE_BYTES_MAX + key.length + 1 <= BUFFER_BYTES : "key too long: bytes=" + key.length;
        valueLength = cursor.valueLength();
        valueAt = 0;
        int length = key.length + 1 + valueLength;
        if (chunked) {
            int digits = (35 - Integer.numberOfLeadingZeros(length)) / 4;
            for (int i = digits - 1; i >= 0; i--) {
                buffer[end++] = HEX[length >>> 4 * i & 15];
            }
            lineEnd();
        }
        append(key, key.length);
        buffer[end++] = '\n';
    }

    /// Adds what there is room for of the entry that is begun; false when its end does not fit.
    private boolean valueEnds() {
        int count = Math.min(valueLength - valueAt, BUFFER_BYTES - end);
        cursor.copyValue(valueAt, buffer, end, count);
        valueAt += count;
        end += count;
        if (valueAt < valueLength || chunked && end + LINE_END_BYTES > BUFFER_BYTES) {
            return false;
        }
        if (chunked) {
            lineEnd();
        }
        valueAt = -1;
        return true;
    }

    private void lineEnd() {
        buffer[end++] = '\r';
        buffer[end++] = '\n';
    }

    private void append(byte[] source, int count) {
        System.arraycopy(source, 0, buffer, end, count);
        end += count;
    }

    @Override
    public int write(Socket socket) throws IOException {
        int sent = writeTurn(socket);
        if (!readElsewhere) {
            cursor.pause();
        }
        if (sent > 0) {
            whenSent.accept(sent);
        }
        return sent;
    }

    private int writeTurn(Socket socket) throws IOException {
        recordsLeft = RECORDS_PER_TURN;
        int sent = 0;
        while (sent < SLICE_BYTES) {
            if (start == end) {
                if (readElsewhere) {
                    break;
                }
                start = 0;
                end = 0;
                fill();
                if (end == 0) {
                    break; // at its end, or to go on in the next turn
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
        synchronized (this) {
            if (released) {
                return;
            }
            released = true;
            if (reading) {
                return; // who reads gives it back
            }
        }
        giveBack();
    }

    private void giveBack() {
        cursor.close();
        memory.giveBack();
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
