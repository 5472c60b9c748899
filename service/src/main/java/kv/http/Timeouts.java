package kv.http;

/// What a connection may take its time for, and since when it does. Milliseconds of [MonotonicClock].
///
/// | what                                        | limit                  | then       |
/// |---------------------------------------------|------------------------|------------|
/// | nothing moves, in either direction          | `--idle-timeout-ms`    | closed     |
/// | from the first to the last byte of a request | `--request-timeout-ms` | 408        |
/// | from the first to the last byte of an answer | `--answer-timeout-ms`  | closed     |
/// | the client reads our end of the connection  | [#LINGER_MILLIS]       | closed     |
///
/// Written under the connection's lock, read by the sweeper without it.
final class Timeouts {
    enum Overdue { NOTHING, REQUEST, CONNECTION }

    static final int LINGER_MILLIS = 2_000;
    private static final long NOT_BEGUN = 0;

    /// one-nio keeps such a time too, but by the wall clock
    private volatile long lastMoveMillis = MonotonicClock.millis();
    private volatile long requestBeganMillis = NOT_BEGUN;
    private volatile long answerBeganMillis = NOT_BEGUN;
    private volatile long lingeringBeganMillis = NOT_BEGUN;

    /// Something moved on the connection, in either direction, or an answer was given.
    void moved() {
        lastMoveMillis = MonotonicClock.millis();
    }

    /// Until [#moved] is called, the connection is at work and not idle.
    void isMoving() {
        lastMoveMillis = Long.MAX_VALUE;
    }

    /// A request is half received, now or still.
    void requestIsIncomplete() {
        if (requestBeganMillis == NOT_BEGUN) {
            requestBeganMillis = MonotonicClock.millis();
        }
    }

    void requestIsComplete() {
        if (requestBeganMillis != NOT_BEGUN) {
            requestBeganMillis = NOT_BEGUN;
        }
    }

    /// The socket did not take the whole answer, now or still.
    void answerIsIncomplete() {
        if (answerBeganMillis == NOT_BEGUN) {
            answerBeganMillis = MonotonicClock.millis();
        }
    }

    void answerIsComplete() {
        if (answerBeganMillis != NOT_BEGUN) {
            answerBeganMillis = NOT_BEGUN;
        }
    }

    /// Since when the client has had an answer that it did not take, or 0.
    long answerBeganMillis() {
        return answerBeganMillis;
    }

    /// Since when nothing goes on because of the client: it has taken nothing of an answer, or not finished a request. In the future when it
    /// is not waited for.
    long waitsForClientSinceMillis() {
        if (answerBeganMillis != NOT_BEGUN) {
            return lastMoveMillis;
        }
        long requestBegan = requestBeganMillis;
        return requestBegan != NOT_BEGUN ? requestBegan : Long.MAX_VALUE;
    }

    void lingeringBegins() {
        lingeringBeganMillis = MonotonicClock.millis();
    }

    /// @param readsSinceMillis since when the connection is read as soon as something comes: what came before may have lain unread
    Overdue overdue(long nowMillis, long readsSinceMillis, HttpOptions options) {
        if (lingeringBeganMillis != NOT_BEGUN) {
            return nowMillis - Math.max(lingeringBeganMillis, readsSinceMillis) > LINGER_MILLIS ? Overdue.CONNECTION : Overdue.NOTHING;
        }
        long answerBegan = answerBeganMillis;
        if (answerBegan != NOT_BEGUN && nowMillis - answerBegan > options.answerTimeoutMillis()
                || nowMillis - Math.max(lastMoveMillis, readsSinceMillis) > options.idleTimeoutMillis()) {
            return Overdue.CONNECTION;
        }
        long requestBegan = requestBeganMillis;
        return requestBegan != NOT_BEGUN && nowMillis - Math.max(requestBegan, readsSinceMillis) > options.requestTimeoutMillis()
                ? Overdue.REQUEST
                : Overdue.NOTHING;
    }
}
