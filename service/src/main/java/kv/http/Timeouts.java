package kv.http;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.function.LongSupplier;

/// What a connection may take its time for, and since when it does: by a clock that stands still while requests
/// hold its selector up, because that is our own time.
///
/// | what                                        | limit                  | then       |
/// |---------------------------------------------|------------------------|------------|
/// | nothing moves, in either direction          | `--idle-timeout-ms`    | closed     |
/// | from the first to the last byte of a request | `--request-timeout-ms` | 408        |
/// | from the first to the last byte of an answer | `--answer-timeout-ms`  | closed     |
/// | the client reads our end of the connection  | [#LINGER_MILLIS]       | closed     |
///
/// The last begins anew with all that still comes, for as long as a request may take: a client that sends on through
/// the rest of a refused body reads the answer only then, and would get a reset instead.
///
/// Beside that it keeps since when the client has moved less than [#STRIDE_BYTES] of a half request or of a
/// half taken answer: a client that is slow but goes on begins a new stride again and again, one that is silent
/// or sends drops does not.
///
/// Written under the connection's lock, read by the sweeper and the [MemoryReclaimer] without it.
final class Timeouts {
    enum Overdue {
        NOTHING,
        REQUEST,
        CONNECTION
    }

    static final int LINGER_MILLIS = 2_000;
    static final int STRIDE_BYTES = 16 << 10;
    private static final long NOT_BEGUN = 0;
    private static final VarHandle LAST_MOVE;

    static {
        try {
            LAST_MOVE = MethodHandles.lookup().findVarHandle(Timeouts.class, "lastMoveMillis", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final LongSupplier clock;
    /// one-nio keeps such a time too, but by the wall clock. Written twice for each request, so without the fence of
    /// a volatile field: who reads it without the lock may see it a moment late.
    private long lastMoveMillis;
    private volatile long requestBeganMillis = NOT_BEGUN;
    private volatile long answerBeganMillis = NOT_BEGUN;
    private volatile long lingeringBeganMillis = NOT_BEGUN;
    private volatile long strideBeganMillis;
    private int strideBytes;

    /// @param clock in milliseconds, positive; stands still while the connection cannot be read
    Timeouts(LongSupplier clock) {
        this.clock = clock;
        lastMoveMillis = clock.getAsLong();
    }

    /// Something moved on the connection, in either direction, or an answer was given.
    void moved() {
        movedAt(clock.getAsLong());
    }

    /// As [#moved], for who knows the time.
    ///
    /// @param millis by the same clock
    void movedAt(long millis) {
        LAST_MOVE.setRelease(this, millis);
    }

    /// Until [#moved] is called, the connection is at work and not idle.
    void isMoving() {
        LAST_MOVE.setRelease(this, Long.MAX_VALUE);
    }

    private long lastMoveMillis() {
        return (long) LAST_MOVE.getAcquire(this);
    }

    /// A request is half received, now or still.
    void requestIsIncomplete() {
        if (requestBeganMillis == NOT_BEGUN) {
            requestBeganMillis = clock.getAsLong();
            beginStride();
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
            answerBeganMillis = clock.getAsLong();
            beginStride();
        }
    }

    void answerIsComplete() {
        if (answerBeganMillis != NOT_BEGUN) {
            answerBeganMillis = NOT_BEGUN;
            beginStride(); // the next request was not read meanwhile
        }
    }

    /// The client has sent, or taken, so many bytes.
    void clientMoved(int bytes) {
        if (answerBeganMillis != NOT_BEGUN || requestBeganMillis != NOT_BEGUN) {
            strideBytes += bytes;
            if (strideBytes >= STRIDE_BYTES) {
                beginStride();
            }
        }
    }

    private void beginStride() {
        strideBytes = 0;
        strideBeganMillis = clock.getAsLong();
    }

    /// Since when the client has had an answer that it did not take, or 0.
    long answerBeganMillis() {
        return answerBeganMillis;
    }

    /// Since when the client, of which the rest of a request or the taking of an answer is awaited, has moved
    /// less than [#STRIDE_BYTES] of it. In the future when it is not waited for.
    long waitsForClientSinceMillis() {
        boolean waits = answerBeganMillis != NOT_BEGUN || requestBeganMillis != NOT_BEGUN;
        return waits && lastMoveMillis() != Long.MAX_VALUE ? strideBeganMillis : Long.MAX_VALUE;
    }

    /// True when the last move came so long after the answer was begun that its time is over.
    boolean isAnswerOverdue(HttpOptions options) {
        long began = answerBeganMillis;
        return began != NOT_BEGUN && lastMoveMillis() - began > options.answerTimeoutMillis();
    }

    void lingeringBegins() {
        lingeringBeganMillis = clock.getAsLong();
    }

    /// @param nowMillis by the same clock
    Overdue overdue(long nowMillis, HttpOptions options) {
        if (lingeringBeganMillis != NOT_BEGUN) {
            boolean isSilent = nowMillis - Math.max(lingeringBeganMillis, lastMoveMillis()) > LINGER_MILLIS;
            long limitMillis = Math.max(LINGER_MILLIS, options.requestTimeoutMillis());
            return isSilent || nowMillis - lingeringBeganMillis > limitMillis ? Overdue.CONNECTION : Overdue.NOTHING;
        }
        long answerBegan = answerBeganMillis;
        if (answerBegan != NOT_BEGUN && nowMillis - answerBegan > options.answerTimeoutMillis()
                || nowMillis - lastMoveMillis() > options.idleTimeoutMillis()) {
            return Overdue.CONNECTION;
        }
        long requestBegan = requestBeganMillis;
        return requestBegan != NOT_BEGUN && nowMillis - requestBegan > options.requestTimeoutMillis()
                ? Overdue.REQUEST
                : Overdue.NOTHING;
    }
}
