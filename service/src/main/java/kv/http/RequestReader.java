package kv.http;

/// Turns the bytes of a connection, in whatever pieces they arrive, into requests. No I/O: the connection hands
/// in what it has, and acts on what comes back.
///
/// ```
///            ┌──── head ────┐        ┌───── body ─────┐
///  bytes ──► │ RequestParser │ ─────► │  RequestBody   │ ──► REQUEST
///            └──────┬───────┘        └───────┬────────┘
///                   └──► REJECTED ◄──────────┘   the body is then read and dropped, if it is not too long
/// ```
final class RequestReader {
    enum Event {
        /// call again with the bytes from [#position] on and more behind them
        MORE,
        /// [#request] is complete
        REQUEST,
        /// the client waits for "100 Continue" before it sends the body
        EXPECTS_CONTINUE,
        /// answer `request().rejection`; go on only if `request().keepAlive`
        REJECTED
    }

    static final int HEAD_BYTES_MAX = 16 << 10;
    /// The rest of a refused body is read to its end, so that the connection can go on, up to this many bytes.
    static final long DISCARD_BYTES_MAX = 16 << 20;

    private final Request request;
    private final RequestBody body;
    private final long valueBytesMax;
    private final long batchBytesMax;
    private boolean inBody;
    private boolean answered;
    private boolean mayContinue;
    private int headBytesSeen;
    private int position;

    /// @param memory of the connection
    RequestReader(MemoryBudget.Account memory, int valueBytesMax, int batchBytesMax) {
        this.request = new Request(memory);
        this.body = new RequestBody(memory);
        // What all requests together may hold never has room for more, however often it is tried.
        this.valueBytesMax = Math.min(valueBytesMax, memory.bytesMax());
        this.batchBytesMax = Math.min(batchBytesMax, memory.bytesMax());
    }

    Request request() {
        return request;
    }

    int position() {
        return position;
    }

    /// True between two requests, as far as this reader knows.
    boolean isIdle() {
        return !inBody;
    }

    /// Gives back what the last request's body took.
    void release() {
        body.drop();
        request.forgetValue();
    }

    /// True when what comes of a body is passed over, since its request was answered before.
    boolean isAnswered() {
        return answered;
    }

    /// What the last request's body has taken from the memory budget.
    long bytesHeld() {
        return body.bytesHeld();
    }

    Event read(byte[] b, int from, int to) {
        position = from;
        if (!inBody) {
            Event event = readHead(b, from, to);
            if (event != null) {
                return event;
            }
        }
        return readBody(b, position, to);
    }

    /// Null when a body is to be read next.
    private Event readHead(byte[] b, int from, int to) {
        int start = RequestParser.skipEmptyLines(b, from, to);
        position = start;
        if (headBytesSeen > 0 && !holdsLineFeed(b, start + headBytesSeen, to)) {
            return moreHead(b, start, to);
        }
        int next = RequestParser.parse(b, start, to, request);
        if (next == RequestParser.INCOMPLETE) {
            return moreHead(b, start, to);
        }
        headBytesSeen = 0;
        position = next;
        if (request.rejectedForGood) {
            return Event.REJECTED;
        }
        if (next - start > HEAD_BYTES_MAX) {
            return refuseHead(b, start, to);
        }
        boolean put = isKept();
        if (request.contentLength > (put ? keptMax() : DISCARD_BYTES_MAX)) {
            request.reject(tooLarge());
        }
        boolean hasBody = request.chunked || request.contentLength > 0;
        if (!hasBody) {
            return request.rejection == null ? Event.REQUEST : Event.REJECTED;
        }
        if (request.rejection == null && put && !request.chunked && to - next >= request.contentLength) {
            position = next + (int) request.contentLength;
            request.value = request.valueRoom((int) request.contentLength);
            System.arraycopy(b, next, request.value, 0, request.value.length);
            return Event.REQUEST;
        }
        answered = request.rejection != null;
        if (answered && (request.expectContinue || request.contentLength > DISCARD_BYTES_MAX)) {
            // the client may or may not send the body that it asked about: what comes next is ambiguous
            request.keepAlive = false;
            return Event.REJECTED;
        }
        inBody = true;
        mayContinue = request.expectContinue;
        body.start(request.chunked, request.contentLength, put && !answered, keptMax());
        return answered ? Event.REJECTED : null;
    }

    private Event moreHead(byte[] b, int from, int to) {
        if (to - from >= HEAD_BYTES_MAX) {
            return refuseHead(b, from, to);
        }
        headBytesSeen = to - from;
        return Event.MORE;
    }

    /// Of a head over [#HEAD_BYTES_MAX], whether its end has come or not: in however many pieces it comes, the
    /// answer is the same.
    private Event refuseHead(byte[] b, int from, int to) {
        boolean lineEnds = holdsLineFeed(b, from, from + HEAD_BYTES_MAX);
        request.clear();
        request.rejectForGood(lineEnds ? Answer.HEAD_TOO_LARGE : Answer.TARGET_TOO_LONG);
        position = to;
        return Event.REJECTED;
    }

    private Event readBody(byte[] b, int from, int to) {
        if (from == to && mayContinue) {
            mayContinue = false;
            return Event.EXPECTS_CONTINUE;
        }
        mayContinue = false;
        RequestBody.Result result = body.read(b, from, to);
        position = body.position();
        return switch (result) {
            case MORE -> body.bytesRead() > DISCARD_BYTES_MAX && (answered || !isKept()) ? giveUp() : Event.MORE;
            case COMPLETE -> {
                inBody = false;
                if (answered) {
                    answered = false;
                    yield position < to ? read(b, position, to) : Event.MORE;
                }
                request.value = body.bytes();
                yield Event.REQUEST;
            }
            case TOO_LARGE -> refuse(tooLarge());
            case MEMORY_FULL -> refuse(Answer.MEMORY_FULL);
            case MALFORMED -> {
                body.drop();
                inBody = false;
                position = to;
                request.rejectForGood(answered ? null : Answer.MALFORMED_CHUNK);
                yield Event.REJECTED;
            }
        };
    }

    /// True when the body matters.
    private boolean isKept() {
        return request.method == Request.Method.PUT && request.target == Target.ENTITY
                || request.method == Request.Method.POST && request.target.isBatch();
    }

    private long keptMax() {
        return request.target.isBatch() ? batchBytesMax : valueBytesMax;
    }

    private Answer tooLarge() {
        return request.target.isBatch() ? Answer.BATCH_TOO_LARGE : Answer.VALUE_TOO_LARGE;
    }

    /// Answers now and drops the rest of the body as it comes.
    private Event refuse(Answer answer) {
        body.discard();
        request.reject(answer);
        answered = !body.isComplete();
        inBody = answered;
        return Event.REJECTED;
    }

    /// A body that was already refused does not end.
    private Event giveUp() {
        inBody = false;
        request.rejectForGood(answered ? null : tooLarge());
        return Event.REJECTED;
    }

    private static boolean holdsLineFeed(byte[] b, int from, int to) {
        for (int i = from; i < to; i++) {
            if (b[i] == '\n') {
                return true;
            }
        }
        return false;
    }
}
