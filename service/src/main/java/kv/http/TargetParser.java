package kv.http;

import kv.http.Request.Method;

/// Reads the target of a request line: which endpoint, with which parameters. Fills or rejects the [Request].
final class TargetParser {
    private static final byte[] ID = Ascii.bytes("id");
    private static final byte[] START = Ascii.bytes("start");
    private static final byte[] END = Ascii.bytes("end");
    private static final byte[] LIMIT = Ascii.bytes("limit");
    private static final byte[] PREFIX = Ascii.bytes("prefix");
    private static final byte[] DIR = Ascii.bytes("dir");
    private static final byte[] TIMEOUT = Ascii.bytes("timeout-ms");
    private static final byte[] SCHEME = Ascii.bytes("http://");
    private static final int NUMBER_DIGITS_MAX = 9;

    private TargetParser() {}

    /// @param from where the target starts
    /// @param pathEnd where its path ends
    /// @param query where its query starts, or `to`
    static void parse(byte[] b, int from, int pathEnd, int query, int to, Request request) {
        int path = from;
        if (b[from] != '/'
                && pathEnd - from > SCHEME.length
                && Ascii.equalIgnoringCase(b, from, from + SCHEME.length, SCHEME)) {
            path = from + SCHEME.length; // absolute form, as sent to proxies: the host does not matter
            while (path < pathEnd && b[path] != '/') {
                path++;
            }
        }
        request.target = Target.of(b, path, pathEnd);
        Answer refusal = methodRefusal(request.target, request.method);
        if (refusal != null) {
            request.reject(refusal);
            return;
        }
        switch (request.target) {
            case ENTITY -> request.key = key(ID, b, query, to, Answer.ID_MISSING, request);
            case ENTITIES -> {
                request.key = key(START, b, query, to, Answer.START_MISSING, request);
                if (RequestKey.find(END, b, query, to) >= 0) {
                    request.end = key(END, b, query, to, Answer.END_EMPTY, request);
                }
                request.limit = number(LIMIT, b, query, to, Integer.MAX_VALUE, Answer.LIMIT_MALFORMED, request);
            }
            case METRICS -> {
                long prefix = RequestKey.find(PREFIX, b, query, to);
                if (prefix >= 0) {
                    request.key = RequestKey.decode(b, (int) (prefix >>> 32), (int) prefix, request);
                }
            }
            case ADMIN_CHECKPOINT -> request.key = key(DIR, b, query, to, Answer.DIR_MISSING, request);
            case ADMIN_IDLE ->
                request.timeoutMillis = number(
                        TIMEOUT, b, query, to, AdminEndpoint.IDLE_MILLIS_DEFAULT, Answer.TIMEOUT_MALFORMED, request);
            case ENTITIES_GET, ENTITIES_BATCH, STATUS, READY, LIVE, ADMIN_FLUSH, ADMIN_COMPACT, ADMIN_OTHER, OTHER -> {}
        }
    }

    /// Null when the target takes the method.
    private static Answer methodRefusal(Target target, Method method) {
        return switch (target) {
            case ENTITY ->
                switch (method) {
                    case GET, PUT, DELETE -> null;
                    case POST, HEAD, OTHER -> Answer.ENTITY_METHOD;
                };
            case ENTITIES, STATUS, READY, LIVE, METRICS -> method == Method.GET ? null : Answer.READ_ONLY;
            case ENTITIES_GET, ENTITIES_BATCH, ADMIN_FLUSH, ADMIN_COMPACT, ADMIN_CHECKPOINT, ADMIN_IDLE, ADMIN_OTHER ->
                method == Method.POST ? null : Answer.POST_ONLY;
            case OTHER -> Answer.UNKNOWN_PATH;
        };
    }

    private static byte[] key(byte[] name, byte[] b, int query, int to, Answer missing, Request request) {
        long found = RequestKey.find(name, b, query, to);
        int from = (int) (found >>> 32);
        int end = (int) found;
        if (found < 0 || from == end) {
            request.reject(missing);
            return null;
        }
        return RequestKey.decode(b, from, end, request);
    }

    /// A number without sign of at most [#NUMBER_DIGITS_MAX] digits, or `absent` when there is none.
    private static int number(byte[] name, byte[] b, int query, int to, int absent, Answer malformed, Request request) {
        long found = RequestKey.find(name, b, query, to);
        if (found < 0) {
            return absent;
        }
        int from = (int) (found >>> 32);
        int end = (int) found;
        int number = 0;
        boolean digits = from < end && end - from <= NUMBER_DIGITS_MAX;
        for (int i = from; i < end && digits; i++) {
            digits = b[i] >= '0' && b[i] <= '9';
            number = 10 * number + b[i] - '0';
        }
        if (!digits) {
            request.reject(malformed);
        }
        return number;
    }
}
