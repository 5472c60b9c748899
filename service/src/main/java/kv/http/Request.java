package kv.http;

import kv.lsm.PendingWrite;

/// The request a connection is working on. One per connection, filled again and again: a connection reads its
/// next request only when this one is answered. So the arrays of key and value are used again too when the next
/// ones are as long, as they often are: whoever keeps one beyond the answer makes a copy.
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
    /// Longer arrays are not kept for the next request: ten thousand connections may keep one each.
    private static final int SPARE_BYTES_MAX = 256;

    /// of its connection
    final MemoryBudget.Account memory;

    Method method = Method.OTHER;
    Target target = Target.OTHER;
    boolean http11;
    boolean keepAlive;
    boolean asksToClose;
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
    byte[] value = NO_BYTES;
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

    /// Where what follows the target begins in the head that is being read, or -1.
    int restAt;
    private RestOfHead restOfPut;
    private RestOfHead restOfOthers;
    private boolean isFirst = true;

    private byte[] spareKey = NO_BYTES;
    private byte[] spareValue = NO_BYTES;

    Request(MemoryBudget.Account memory) {
        this.memory = memory;
    }

    /// Until the next request comes the connection may be idle for long, and nobody counts what it keeps.
    void forgetValue() {
        if (value.length > SPARE_BYTES_MAX) {
            value = NO_BYTES;
        }
    }

    void clear() {
        method = Method.OTHER;
        target = Target.OTHER;
        http11 = true;
        keepAlive = true;
        asksToClose = false;
        expectContinue = false;
        chunked = false;
        hasHost = false;
        contentLength = -1;
        if (key != null && key.length <= SPARE_BYTES_MAX) {
            spareKey = key;
        }
        if (value.length > 0 && value.length <= SPARE_BYTES_MAX) {
            spareValue = value;
        }
        key = null;
        end = null;
        value = NO_BYTES;
        begun = null;
        if (waits != null) {
            waits.clear();
        }
        rejection = null;
        rejectedForGood = false;
        restAt = -1;
    }

    /// What was behind the target when a request of this kind was last accepted. A PUT is of one kind, for it
    /// names the length of its body; all others are of the other. Null for a connection's first request: many
    /// connections send only one.
    RestOfHead restOfHead() {
        if (isFirst) {
            return null;
        }
        if (method == Method.PUT) {
            restOfPut = restOfPut == null ? new RestOfHead() : restOfPut;
            return restOfPut;
        }
        restOfOthers = restOfOthers == null ? new RestOfHead() : restOfOthers;
        return restOfOthers;
    }

    /// The head was read to its end.
    void headIsRead() {
        isFirst = false;
    }

    /// True for a PUT or DELETE of one key.
    boolean isWrite() {
        return target == Target.ENTITY && (method == Method.PUT || method == Method.DELETE);
    }

    /// An array for a key, used again if one was left.
    byte[] keyRoom(int bytes) {
        byte[] room = spareKey.length == bytes ? spareKey : new byte[bytes];
        spareKey = NO_BYTES; // the end of a range must not share the array of its start
        return room;
    }

    /// As [#keyRoom], for a value.
    byte[] valueRoom(int bytes) {
        byte[] room = spareValue.length == bytes ? spareValue : new byte[bytes];
        spareValue = NO_BYTES;
        return room;
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
