package kv.http;

import kv.lsm.PendingWrite;

/// The request a connection is working on. One per connection, filled again and again: a connection reads its
/// next request only when this one is answered, so nothing is allocated but the key and the value.
final class Request {
    enum Method {
        GET,
        PUT,
        DELETE,
        POST,
        HEAD,
        OTHER
    }

    static final byte[] NO_BYTES = {};

    /// of its connection
    final MemoryBudget.Account memory;

    Method method = Method.OTHER;
    Target target = Target.OTHER;
    boolean http11;
    boolean keepAlive;
    boolean expectContinue;
    boolean chunked;
    boolean hasHost;
    /// bytes of the body, or -1 when the head names none
    long contentLength;
    /// `id`, `start`, `prefix` or `dir`, percent-decoded
    byte[] key;
    /// `end`, percent-decoded, or null
    byte[] end;
    /// most entries of a range
    int limit;
    /// how long it may wait
    int timeoutMillis;
    /// the body of a PUT or of a batch
    byte[] value;
    /// the write that it asks for, when that was begun before it is answered, or null
    PendingWrite begun;
    /// when its connection was found ready to be read, by [System#nanoTime]
    long startNanos;
    /// what it waited for; null before the first request of which that is to be known
    RequestWaits waits;
    /// why the request is refused, or null when it is to be served
    Answer rejection;
    /// the head could not be read to its end, so where the next request starts is unknown
    boolean rejectedForGood;

    Request(MemoryBudget.Account memory) {
        this.memory = memory;
    }

    void clear() {
        method = Method.OTHER;
        target = Target.OTHER;
        http11 = true;
        keepAlive = true;
        expectContinue = false;
        chunked = false;
        hasHost = false;
        contentLength = -1;
        key = null;
        end = null;
        value = NO_BYTES;
        begun = null;
        if (waits != null) {
            waits.clear();
        }
        rejection = null;
        rejectedForGood = false;
    }

    /// Refuses the request; the connection goes on. The first reason counts.
    void reject(Answer answer) {
        if (rejection == null) {
            rejection = answer;
        }
    }

    /// As [#reject], but counts before every other reason.
    void rejectAboveAll(Answer answer) {
        rejection = answer;
    }

    /// Refuses the request and gives up the connection.
    void rejectForGood(Answer answer) {
        rejection = answer;
        rejectedForGood = true;
        keepAlive = false;
    }
}
