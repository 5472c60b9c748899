package kv.http;

import java.util.Arrays;

/// The body of one request as it arrives: by length or in chunks, kept for a PUT, counted and dropped
/// otherwise.
///
/// Chunked (RFC 9112, 7.1):
/// ```
/// 5 ;ext CRLF hello CRLF   0 CRLF   trailers CRLF   CRLF
/// ```
///
/// Lines of the framing end in CR LF and nothing else, nothing but an extension stands behind a size, and trailers
/// are headers: a proxy that takes a bare LF for a part of an extension, where we took it for a line's end, would
/// see other requests in the same bytes.
///
/// What is kept grows with what arrived, never with what the head promised, and is taken from a [MemoryBudget].
final class RequestBody {
    enum Result {
        MORE,
        COMPLETE,
        TOO_LARGE,
        MEMORY_FULL,
        MALFORMED
    }

    private enum State {
        SIZE,
        SIZE_SPACE,
        EXTENSION,
        SIZE_LF,
        DATA,
        DATA_CR,
        DATA_LF,
        TRAILER_START,
        TRAILER_NAME,
        TRAILER,
        TRAILER_LF,
        LAST_LF,
        DONE
    }

    private static final int FIRST_BYTES = 64 << 10;
    private static final int FRAMING_BYTES_MAX = 16 << 10;

    private final MemoryBudget.Share memory;
    private long keptMax;

    private State state = State.DONE;
    private boolean keep;
    private boolean chunked;
    /// of the chunk, or of the whole body when it is sent by length
    private long bytesLeft;
    private int sizeDigits;
    private long bytesRead;
    private int framingBytes;
    private byte[] kept = Request.NO_BYTES;
    private int keptLength;
    private int position;

    RequestBody(MemoryBudget.Account account) {
        this.memory = account.share();
    }

    /// @param keptBytesMax of the largest body that is kept
    void start(boolean chunkedBody, long contentLength, boolean keepIt, long keptBytesMax) {
        drop();
        keptMax = keptBytesMax;
        chunked = chunkedBody;
        keep = keepIt;
        state = chunkedBody ? State.SIZE : State.DATA;
        bytesLeft = chunkedBody ? 0 : contentLength;
        sizeDigits = 0;
        bytesRead = 0;
        framingBytes = 0;
    }

    /// Reads from `[from, to)`; [#position] is then the offset after what was used.
    Result read(byte[] b, int from, int to) {
        int at = from;
        Result result = Result.MORE;
        while (at < to && result == Result.MORE && state != State.DONE) {
            if (state == State.DATA) {
                int count = (int) Math.min(bytesLeft, to - at);
                result = take(b, at, count);
                at += count;
                bytesLeft -= count;
                if (bytesLeft == 0) {
                    state = chunked ? State.DATA_CR : State.DONE;
                }
            } else {
                result = framing(b[at++]);
            }
        }
        position = at;
        return state == State.DONE && result == Result.MORE ? Result.COMPLETE : result;
    }

    int position() {
        return position;
    }

    /// From now on the bytes are only counted, beginning with the next one.
    void discard() {
        keep = false;
        bytesRead = 0;
        framingBytes = 0;
        drop();
    }

    boolean isComplete() {
        return state == State.DONE;
    }

    /// Since the start, or since [#discard].
    long bytesRead() {
        return bytesRead;
    }

    /// The whole body; the memory taken for it stays taken until [#drop].
    byte[] bytes() {
        if (kept.length > keptLength) {
            kept = Arrays.copyOf(kept, keptLength); // the longer array is let go of: memory was taken for one of them
        }
        return kept;
    }

    /// Taken from the memory budget.
    long bytesHeld() {
        return memory.bytesHeld();
    }

    /// Lets go of the bytes and gives their memory back.
    void drop() {
        kept = Request.NO_BYTES;
        keptLength = 0;
        memory.giveBack();
    }

    private Result take(byte[] b, int from, int count) {
        bytesRead += count;
        if (!keep) {
            return Result.MORE;
        }
        if (bytesRead > keptMax) {
            return Result.TOO_LARGE;
        }
        if (keptLength + count > kept.length) {
            long wanted = chunked ? keptMax : bytesRead + bytesLeft - count;
            long grown = Math.max(keptLength + count, Math.max(FIRST_BYTES, 2L * kept.length));
            int length = (int) Math.min(wanted, grown);
            if (!memory.growTo(length)) {
                return Result.MEMORY_FULL;
            }
            kept = Arrays.copyOf(kept, length);
        }
        System.arraycopy(b, from, kept, keptLength, count);
        keptLength += count;
        return Result.MORE;
    }

    private Result framing(byte c) {
        framingBytes++;
        switch (state) {
            case SIZE -> {
                int digit = Character.digit(c, 16);
                if (digit >= 0 && sizeDigits < 15) {
                    bytesLeft = bytesLeft << 4 | digit;
                    sizeDigits++;
                } else if (sizeDigits == 0 || digit >= 0) {
                    return Result.MALFORMED;
                } else if (c == '\r') {
                    state = State.SIZE_LF;
                } else if (c == ';') {
                    state = State.EXTENSION;
                } else if (c == ' ' || c == '\t') {
                    state = State.SIZE_SPACE;
                } else {
                    return Result.MALFORMED;
                }
            }
            case SIZE_SPACE -> {
                if (c == '\r') {
                    state = State.SIZE_LF;
                } else if (c == ';') {
                    state = State.EXTENSION;
                } else if (c != ' ' && c != '\t') {
                    return Result.MALFORMED;
                }
            }
            case EXTENSION -> {
                if (c == '\r') {
                    state = State.SIZE_LF;
                } else if (isRefused(c)) {
                    return Result.MALFORMED;
                }
            }
            case SIZE_LF -> {
                if (c != '\n') {
                    return Result.MALFORMED;
                }
                endOfSize();
            }
            case DATA_CR -> {
                if (c != '\r') {
                    return Result.MALFORMED;
                }
                state = State.DATA_LF;
            }
            case DATA_LF -> {
                if (c != '\n') {
                    return Result.MALFORMED;
                }
                state = State.SIZE;
            }
            case TRAILER_START, TRAILER_NAME -> {
                boolean ends = state == State.TRAILER_START && c == '\r';
                boolean named = state == State.TRAILER_NAME && c == ':';
                if (!ends && !named && !Ascii.isToken(c)) {
                    return Result.MALFORMED;
                }
                state = ends ? State.LAST_LF : named ? State.TRAILER : State.TRAILER_NAME;
            }
            case TRAILER -> {
                if (c == '\r') {
                    state = State.TRAILER_LF;
                } else if (isRefused(c)) {
                    return Result.MALFORMED;
                }
            }
            case TRAILER_LF -> {
                if (c != '\n') {
                    return Result.MALFORMED;
                }
                state = State.TRAILER_START;
            }
            case LAST_LF -> {
                if (c != '\n') {
                    return Result.MALFORMED;
                }
                state = State.DONE;
            }
            case DATA, DONE -> throw new AssertionError(state);
        }
        // one-byte chunks carry five bytes of framing each: allow for them, but not for endless extensions and
        // trailers
        return framingBytes > FRAMING_BYTES_MAX + 8 * bytesRead ? Result.MALFORMED : Result.MORE;
    }

    /// True for what a header may not hold either.
    private static boolean isRefused(byte c) {
        return Ascii.isControl(c) && c != '\t';
    }

    private void endOfSize() {
        state = bytesLeft == 0 ? State.TRAILER_START : State.DATA;
        sizeDigits = 0;
    }
}
