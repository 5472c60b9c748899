package kv.http;

import java.util.Arrays;
import kv.http.Request.Method;

/// Reads the head of a request, from its first byte to the empty line, out of a buffer. Bytes in, a filled
/// [Request] out; no I/O. What heads before it said is kept by the request ([RestOfHead]), and only saves
/// reading it again.
///
/// ```
/// PUT /v0/entity?id=K HTTP/1.1 CRLF      method SP target SP version
/// Host: x CRLF                           name ":" value; five names matter, the others are only checked
/// CRLF
/// ```
///
/// A line may end in LF alone (RFC 9112, 2.2). An HTTP/1.1 request has one Host header (3.2), though no answer
/// depends on it. Folded lines, white space before a colon, control characters and two answers to the question
/// where the body ends are refused: proxies and servers that guess differently can be made to disagree about
/// where a request begins.
final class RequestParser {
    static final int INCOMPLETE = -1;
    /// of a line: the request is rejected for good; no offset after a line is 0
    private static final int REFUSED = 0;
    private static final int HEADERS_MAX = 100;

    private static final byte[] GET = Ascii.bytes("GET");
    private static final byte[] PUT = Ascii.bytes("PUT");
    private static final byte[] POST = Ascii.bytes("POST");
    private static final byte[] DELETE = Ascii.bytes("DELETE");
    private static final byte[] HEAD = Ascii.bytes("HEAD");
    private static final byte[] HTTP_1 = Ascii.bytes("HTTP/1.");

    private RequestParser() {}

    /// The offset behind the empty lines at `from`: some clients end a body with one that they do not count (RFC
    /// 9112, 2.2). They belong to no head, so nothing of them is to be kept.
    static int skipEmptyLines(byte[] b, int from, int to) {
        int at = from;
        while (at < to && (b[at] == '\r' || b[at] == '\n')) {
            at++;
        }
        return at;
    }

    /// The offset after the head that starts at `from`, or [#INCOMPLETE] when `[from, to)` does not hold all of
    /// it. A head that cannot be read is a rejection for good in `request`; the offset is then `to`.
    static int parse(byte[] b, int from, int to, Request request) {
        request.clear();
        int next = requestLine(b, from, to, request);
        for (int headers = 0; next > 0 && next < to; headers++) {
            if (b[next] == '\n') {
                return endOfHead(b, next, next + 1, request);
            }
            if (b[next] == '\r') {
                if (next + 1 == to) {
                    return INCOMPLETE;
                }
                if (b[next + 1] == '\n') {
                    return endOfHead(b, next, next + 2, request);
                }
            }
            if (headers == HEADERS_MAX) {
                request.rejectForGood(Answer.HEAD_TOO_LARGE);
                return to;
            }
            next = header(b, next, to, request);
        }
        return next == REFUSED ? to : INCOMPLETE;
    }

    private static int endOfHead(byte[] b, int emptyLine, int end, Request request) {
        if (request.http11 && !request.hasHost) {
            request.rejectAboveAll(Answer.MALFORMED_HOST); // the head was read to its end, so the connection can go on
        }
        RestOfHead rest = request.restAt < 0 || request.rejection != null ? null : request.restOfHead();
        if (rest != null) {
            rest.know(b, request.restAt, emptyLine, end, request);
        }
        request.headIsRead();
        return end;
    }

    /// The offset after the line, [#INCOMPLETE] or [#REFUSED]; where the rest of the head is known, that of the
    /// empty line.
    private static int requestLine(byte[] b, int from, int to, Request request) {
        int at = from;
        while (at < to && Ascii.isToken(b[at])) {
            at++;
        }
        if (at == to) {
            return INCOMPLETE;
        }
        if (at == from || b[at] != ' ') {
            return malformed(request);
        }
        request.method = method(b, from, at);

        int target = at + 1;
        int query = 0;
        for (at = target; at < to && b[at] != ' '; at++) {
            if (b[at] == '?' && query == 0) {
                query = at + 1;
            } else if (Ascii.isControl(b[at]) || b[at] == '#') {
                return malformed(request);
            }
        }
        int targetEnd = at;
        RestOfHead rest = targetEnd == target ? null : request.restOfHead();
        int emptyLine = rest == null ? -1 : rest.read(b, targetEnd, to, request);
        if (emptyLine >= 0) {
            target(b, target, query, targetEnd, request);
            return emptyLine;
        }
        int versionEnd = at + 1 + HTTP_1.length + 1;
        if (versionEnd >= to) {
            return Ascii.lineEnd(b, at, to) < 0 ? INCOMPLETE : malformed(request);
        }
        if (targetEnd == target) {
            return malformed(request);
        }
        if (!Arrays.equals(b, at + 1, versionEnd - 1, HTTP_1, 0, HTTP_1.length)) {
            boolean http = Arrays.equals(b, at + 1, at + 6, HTTP_1, 0, 5);
            request.rejectForGood(http ? Answer.VERSION_UNKNOWN : Answer.MALFORMED_REQUEST);
            return REFUSED;
        }
        int minor = b[versionEnd - 1];
        if (minor < '0' || minor > '9') {
            return malformed(request);
        }
        request.http11 = minor > '0';
        request.keepAlive = request.http11;
        at = b[versionEnd] == '\r' ? versionEnd + 1 : versionEnd;
        if (at == to) {
            return INCOMPLETE;
        }
        if (b[at] != '\n') {
            return malformed(request);
        }
        target(b, target, query, targetEnd, request);
        request.restAt = targetEnd;
        return at + 1;
    }

    /// @param query where it begins, or 0 for none
    private static void target(byte[] b, int from, int query, int to, Request request) {
        TargetParser.parse(b, from, query == 0 ? to : query - 1, query == 0 ? to : query, to, request);
    }

    private static Method method(byte[] b, int from, int to) {
        if (Ascii.equal(b, from, to, GET)) {
            return Method.GET;
        }
        if (Ascii.equal(b, from, to, PUT)) {
            return Method.PUT;
        }
        if (Ascii.equal(b, from, to, DELETE)) {
            return Method.DELETE;
        }
        if (Ascii.equal(b, from, to, POST)) {
            return Method.POST;
        }
        return Ascii.equal(b, from, to, HEAD) ? Method.HEAD : Method.OTHER;
    }

    /// As [#requestLine].
    private static int header(byte[] b, int from, int to, Request request) {
        int colon = from;
        while (colon < to && Ascii.isToken(b[colon])) {
            colon++;
        }
        int end = Ascii.lineEnd(b, colon, to);
        if (end < 0) {
            return INCOMPLETE;
        }
        if (colon == from || b[colon] != ':') {
            return malformed(request);
        }
        int last = b[end - 1] == '\r' ? end - 1 : end;
        for (int i = colon + 1; i < last; i++) {
            if (Ascii.isControl(b[i]) && b[i] != '\t') {
                return malformed(request);
            }
        }
        HeaderParser.read(b, from, colon, last, request);
        return request.rejectedForGood ? REFUSED : end + 1;
    }

    private static int malformed(Request request) {
        request.rejectForGood(Answer.MALFORMED_REQUEST);
        return REFUSED;
    }
}
