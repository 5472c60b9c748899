package kv.http;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// The answers whose bytes never change, built once: status line, headers and a line of text that says what is
/// wrong.
///
/// Each comes in three forms, because the only thing that differs from request to request is what happens to
/// the connection afterwards. HTTP/1.1 keeps it open without being told; HTTP/1.0 must be told.
enum Answer {
    READY(200, "OK", "ready"),
    LIVE(200, "OK", "live"),
    CREATED(201, "Created", ""),
    ACCEPTED(202, "Accepted", ""),

    MALFORMED_REQUEST(400, "Bad Request", "malformed request"),
    MALFORMED_HOST(400, "Bad Request", "expected one Host header with a valid host"),
    MALFORMED_ESCAPE(400, "Bad Request", "malformed percent escape in a key, a prefix or dir"),
    MALFORMED_LENGTH(400, "Bad Request", "malformed, repeated or contradictory body length"),
    MALFORMED_CHUNK(400, "Bad Request", "malformed chunk in the request body"),
    UNKNOWN_PATH(
            400,
            "Bad Request",
            "unknown path: expected /v0/entity, /v0/entities, /v0/entities/get or batch, /v0/status, /v0/ready, "
                    + "/v0/live, /metrics or /v0/admin/"),
    ID_MISSING(400, "Bad Request", "id is missing or empty: expected /v0/entity?id=KEY"),
    START_MISSING(400, "Bad Request", "start is missing or empty: expected /v0/entities?start=KEY[&end=KEY]"),
    END_EMPTY(400, "Bad Request", "end is empty: leave it out to read to the last key"),
    DIR_MISSING(400, "Bad Request", "dir is no absolute path in UTF-8: expected /v0/admin/checkpoint?dir=PATH"),
    DIR_PARENT_MISSING(400, "Bad Request", "the directory above dir does not exist"),
    DIR_NOT_MADE(400, "Bad Request", "dir cannot be made; the service's log says why"),
    DIR_INSIDE_STORE(400, "Bad Request", "dir is inside the store's directory: choose one beside it"),
    DIR_OTHER_FILE_SYSTEM(
            400, "Bad Request", "the store's tables cannot be linked in dir: choose one on its file system"),
    LIMIT_MALFORMED(400, "Bad Request", "limit is no number of entries up to 999999999"),
    BATCH_MALFORMED(400, "Bad Request", "malformed body: service/docs/http.md says how keys and values are framed"),
    TIMEOUT_MALFORMED(400, "Bad Request", "timeout-ms is no number of milliseconds up to 999999999"),
    ADMIN_OFF(403, "Forbidden", "admin requests are off: start the service with --admin"),
    NOT_FOUND(404, "Not Found", ""),
    ADMIN_UNKNOWN(404, "Not Found", "unknown admin request: expected flush, compact, checkpoint?dir=PATH or idle"),
    ENTITY_METHOD(405, "Method Not Allowed", "expected GET, PUT or DELETE", "Allow: GET, PUT, DELETE"),
    READ_ONLY(405, "Method Not Allowed", "expected GET", "Allow: GET"),
    POST_ONLY(405, "Method Not Allowed", "expected POST", "Allow: POST"),
    BATCH_TOO_MANY(413, "Content Too Large", "more than 10000 keys in one request"),
    BATCH_TOO_LARGE(
            413, "Content Too Large", "the body is longer than --max-batch-bytes, or than a quarter of the heap"),
    BATCH_VALUES_TOO_LARGE(
            413,
            "Content Too Large",
            "the values together are longer than --max-batch-bytes, or than an eighth of the heap: ask for fewer keys"),
    DIR_EXISTS(409, "Conflict", "dir exists already: a checkpoint makes its own directory"),
    REQUEST_TIMEOUT(408, "Request Timeout", "the rest of the request did not come in time"),
    VALUE_TOO_LARGE(
            413, "Content Too Large", "the value is larger than --max-value-bytes, or than a quarter of the heap"),
    KEY_TOO_LONG(414, "URI Too Long", "a key, a prefix or dir is longer than 1024 bytes"),
    TARGET_TOO_LONG(414, "URI Too Long", "the request line is too long"),
    EXPECTATION_UNKNOWN(417, "Expectation Failed", "expected 100-continue"),
    HEAD_TOO_LARGE(431, "Request Header Fields Too Large", "the request's headers are too large"),

    FAILED(500, "Internal Server Error", "the request failed; the service's log says why"),
    WRITES_REFUSED(500, "Internal Server Error", "the store takes no more writes after an I/O error"),
    ENCODING_UNKNOWN(501, "Not Implemented", "expected Transfer-Encoding: chunked"),
    NOT_IDLE(503, "Service Unavailable", "flush or compaction is still at work", "Retry-After: 1"),
    ATTEMPT_FAILED(
            503,
            "Service Unavailable",
            "it failed for a reason that may pass: ask again; the service's log says why",
            "Retry-After: 1"),
    NOT_WRITABLE(503, "Service Unavailable", "the store takes no writes after an I/O error; its log says which"),
    STARTING(503, "Service Unavailable", "starting", "Retry-After: 1"),
    STOPPING(503, "Service Unavailable", "stopping", "Retry-After: 1"),
    QUEUE_FULL(503, "Service Unavailable", "too many requests wait for a worker", "Retry-After: 1"),
    NO_LOG(
            503,
            "Service Unavailable",
            "no log can be made for the write, as on a full disk; the service's log says why",
            "Retry-After: 1"),
    STALLED_BY_FAILURE(
            503,
            "Service Unavailable",
            "a flush or compaction that writes wait for fails and is tried again, as on a full disk; the service's "
                    + "log says why",
            "Retry-After: 1"),
    STALLED(503, "Service Unavailable", "writes are stalled until flush and compaction catch up", "Retry-After: 1"),
    MEMORY_FULL(503, "Service Unavailable", "too many unfinished requests are held in memory", "Retry-After: 1"),
    VERSION_UNKNOWN(505, "HTTP Version Not Supported", "expected HTTP/1.1 or HTTP/1.0");

    private final int status;
    private final Form[] forms;

    /// @param headBytes length of status line and headers, which is all that a HEAD request gets
    private record Form(byte[] bytes, int headBytes) {}

    Answer(int status, String reason, String text, String... headers) {
        this.status = status;
        String body = text.isEmpty() ? "" : text + "\n";
        StringBuilder head = new StringBuilder("HTTP/1.1 " + status + " " + reason + "\r\n");
        for (String header : headers) {
            head.append(header).append("\r\n");
        }
        if (!body.isEmpty()) {
            head.append("Content-Type: text/plain; charset=utf-8\r\n");
        }
        head.append("Content-Length: ").append(body.length()).append("\r\n");
        this.forms = new Form[] {
            form(head + "\r\n", body),
            form(head + "Connection: keep-alive\r\n\r\n", body),
            form(head + "Connection: close\r\n\r\n", body)
        };
    }

    private static Form form(String head, String body) {
        return new Form((head + body).getBytes(StandardCharsets.US_ASCII), head.length());
    }

    int status() {
        return status;
    }

    /// Every status that there is an answer of.
    static int[] statuses() {
        return Arrays.stream(values()).mapToInt(Answer::status).distinct().toArray();
    }

    void writeTo(Output out, Request request) {
        Form form = forms[!request.keepAlive ? 2 : request.http11 ? 0 : 1];
        out.append(form.bytes, 0, request.method == Request.Method.HEAD ? form.headBytes : form.bytes.length);
    }
}
