package kv.http;

import java.util.Arrays;

/// What stood behind the target in a head that was read before, from the blank before the version to the empty
/// line, and what it meant. A client says the same there in nearly all of its requests, and it means the same:
/// nothing before it, neither method nor target, changes that.
final class RestOfHead {
    /// Longer ones are read anew each time: ten thousand connections may keep two each.
    static final int BYTES_MAX = 192;
    /// Rooms grow in these steps, so that a number that gets a digit more needs no other room.
    private static final int ROOM_BYTES = 64;

    private byte[] bytes = Request.NO_BYTES;
    /// 0 when none is known.
    private int length;
    /// Where the empty line begins.
    private int emptyLineAt;
    private boolean http11;
    private boolean keepAlive;
    private boolean expectContinue;
    private boolean chunked;
    private boolean hasHost;
    private long contentLength;

    /// Fills `request` when the known rest stands at `at`, and returns where its empty line begins, else -1.
    int read(byte[] b, int at, int to, Request request) {
        if (length == 0 || to - at < length || !Arrays.equals(b, at, at + length, bytes, 0, length)) {
            return -1;
        }
        request.http11 = http11;
        request.keepAlive = keepAlive;
        request.expectContinue = expectContinue;
        request.chunked = chunked;
        request.hasHost = hasHost;
        request.contentLength = contentLength;
        return at + emptyLineAt;
    }

    /// Takes what stands in `[from, to)`, which ends in the empty line at `emptyLine`, for known from now on.
    ///
    /// @param request filled from it, and not refused
    void know(byte[] b, int from, int emptyLine, int to, Request request) {
        int newLength = to - from;
        if (newLength > BYTES_MAX) {
            length = 0;
            return;
        }
        if (bytes.length < newLength) {
            bytes = new byte[(newLength + ROOM_BYTES - 1) / ROOM_BYTES * ROOM_BYTES];
        }
        System.arraycopy(b, from, bytes, 0, newLength);
        length = newLength;
        emptyLineAt = emptyLine - from;
        http11 = request.http11;
        keepAlive = request.keepAlive;
        expectContinue = request.expectContinue;
        chunked = request.chunked;
        hasHost = request.hasHost;
        contentLength = request.contentLength;
    }
}
