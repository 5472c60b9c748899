package kv.http;

/// What the headers say that matters to the service: five names, the others are skipped.
final class HeaderParser {
    private static final long LENGTH_MAX = 1L << 50;
    private static final byte[] HOST = Ascii.bytes("host");
    private static final byte[] CONNECTION = Ascii.bytes("connection");
    private static final byte[] CONTENT_LENGTH = Ascii.bytes("content-length");
    private static final byte[] TRANSFER_ENCODING = Ascii.bytes("transfer-encoding");
    private static final byte[] EXPECT = Ascii.bytes("expect");
    private static final byte[] CLOSE = Ascii.bytes("close");
    private static final byte[] KEEP_ALIVE = Ascii.bytes("keep-alive");
    private static final byte[] CHUNKED = Ascii.bytes("chunked");
    private static final byte[] CONTINUE = Ascii.bytes("100-continue");

    private HeaderParser() {}

    /// Takes the header with name `[from, colon)` and value `(colon, to)` into `request`.
    static void read(byte[] b, int from, int colon, int to, Request request) {
        switch (colon - from) {
            case 4 -> {
                if (Ascii.equalIgnoringCase(b, from, colon, HOST)) {
                    host(b, colon + 1, to, request);
                }
            }
            case 6 -> {
                if (Ascii.equalIgnoringCase(b, from, colon, EXPECT)) {
                    expect(b, colon + 1, to, request);
                }
            }
            case 10 -> {
                if (Ascii.equalIgnoringCase(b, from, colon, CONNECTION)) {
                    connection(b, colon + 1, to, request);
                }
            }
            case 14 -> {
                if (Ascii.equalIgnoringCase(b, from, colon, CONTENT_LENGTH)) {
                    contentLength(b, colon + 1, to, request);
                }
            }
            case 17 -> {
                if (Ascii.equalIgnoringCase(b, from, colon, TRANSFER_ENCODING)) {
                    transferEncoding(b, colon + 1, to, request);
                }
            }
            default -> {}
        }
    }

    /// It may be empty, which says that the client knows none. Two of them, or one that is none, do not say
    /// where the request ends otherwise than one would: the connection goes on.
    private static void host(byte[] b, int from, int to, Request request) {
        int start = Ascii.skipSpace(b, from, to);
        if (request.hasHost || !Ascii.isHost(b, start, Ascii.trimSpace(b, start, to))) {
            request.rejectAboveAll(Answer.MALFORMED_HOST);
        }
        request.hasHost = true;
    }

    /// Who says both, in whatever order, has the connection closed (RFC 9112, 9.3).
    private static void connection(byte[] b, int from, int to, Request request) {
        for (int at = from; at < to; ) {
            int comma = at;
            while (comma < to && b[comma] != ',') {
                comma++;
            }
            int start = Ascii.skipSpace(b, at, comma);
            int end = Ascii.trimSpace(b, start, comma);
            if (Ascii.equalIgnoringCase(b, start, end, CLOSE)) {
                request.asksToClose = true;
                request.keepAlive = false;
            } else if (!request.http11 && Ascii.equalIgnoringCase(b, start, end, KEEP_ALIVE)) {
                request.keepAlive = !request.asksToClose;
            }
            at = comma + 1;
        }
    }

    private static void contentLength(byte[] b, int from, int to, Request request) {
        int start = Ascii.skipSpace(b, from, to);
        int end = Ascii.trimSpace(b, start, to);
        long length = 0;
        for (int i = start; i < end; i++) {
            if (b[i] < '0' || b[i] > '9' || length > LENGTH_MAX) {
                request.rejectForGood(Answer.MALFORMED_LENGTH);
                return;
            }
            length = length * 10 + b[i] - '0';
        }
        if (start == end || request.chunked || request.contentLength >= 0 && request.contentLength != length) {
            request.rejectForGood(Answer.MALFORMED_LENGTH);
            return;
        }
        request.contentLength = length;
    }

    private static void transferEncoding(byte[] b, int from, int to, Request request) {
        int start = Ascii.skipSpace(b, from, to);
        if (!Ascii.equalIgnoringCase(b, start, Ascii.trimSpace(b, start, to), CHUNKED)) {
            request.rejectForGood(Answer.ENCODING_UNKNOWN);
        } else if (request.contentLength >= 0 || request.chunked || !request.http11) {
            request.rejectForGood(Answer.MALFORMED_LENGTH);
        } else {
            request.chunked = true;
        }
    }

    private static void expect(byte[] b, int from, int to, Request request) {
        int start = Ascii.skipSpace(b, from, to);
        if (Ascii.equalIgnoringCase(b, start, Ascii.trimSpace(b, start, to), CONTINUE)) {
            request.expectContinue = request.http11; // RFC 9110, 10.1.1: ignored in HTTP/1.0
        } else {
            request.reject(Answer.EXPECTATION_UNKNOWN);
        }
    }
}
