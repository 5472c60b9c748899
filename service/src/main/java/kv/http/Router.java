package kv.http;

import kv.lsm.AttemptFailedException;
import kv.lsm.PendingWrite;
import kv.lsm.RangeCursor;
import kv.lsm.StallCause;
import kv.lsm.Store;
import kv.lsm.StoreClosedException;
import kv.lsm.StoreException;
import kv.lsm.StoreFailedException;
import kv.lsm.WriteStalledException;
import one.profiler.Span;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// From a request to its answer: which endpoint, which call of the store, which status. Never throws; an error
/// that a client cannot have caused is logged, at most one a second.
///
/// While async-profiler records, every request is a span named by method and endpoint, so that a flame graph or
/// heat map can be cut to one kind of request; otherwise a span costs one read of a static field.
final class Router {
    private static final Logger log = LoggerFactory.getLogger(Router.class);

    private final HttpMetrics metrics;
    private final AdminEndpoint adminOrNull;
    private final BatchEndpoint batches;
    private final SlowRequestLog slowOrNull;
    private volatile Store store;
    private volatile boolean stopping;
    private final Rarely logged = Rarely.onceASecond();

    Router(HttpMetrics metrics, HttpOptions options) {
        this.metrics = metrics;
        batches = new BatchEndpoint(options);
        slowOrNull = SlowRequestLog.orNull(options.operations().slowRequestMillis());
        adminOrNull = options.operations().admin() ? new AdminEndpoint(this::isStopping) : null;
    }

    /// From now on requests are served from `openStore`; before, they are answered 503.
    void ready(Store openStore) {
        store = openStore;
    }

    /// From now on the status is 503 and every answer closes its connection.
    void stopping() {
        stopping = true;
    }

    /// No more requests come.
    void stopped() {
        if (slowOrNull != null) {
            slowOrNull.end();
        }
    }

    /// Null when slow requests are not logged.
    SlowRequestLog slowRequestsOrNull() {
        return slowOrNull;
    }

    /// To be called before another thread is asked to answer the request.
    void handsOver(Request request) {
        if (slowOrNull != null) {
            slowOrNull.handsOver(request);
        }
    }

    boolean isStopping() {
        return stopping;
    }

    void answer(Request request, Output out) {
        boolean answered = tryAnswer(request, out, Patience.ANY);
        assert answered : "a request that may wait was not answered: " + request.method;
    }

    /// As [#answer], but false, and nothing is written, when that would wait for longer than the thread may.
    boolean tryAnswer(Request request, Output out, Patience patience) {
        closeIfStopping(request);
        if (slowOrNull != null) {
            slowOrNull.isServed(request);
        }
        int mark = out.mark();
        long span = Span.start();
        try {
            if (!route(request, out, patience)) {
                return false;
            }
        } catch (WriteStalledException e) {
            boolean noLog = e.stallCause() == StallCause.NO_LOG;
            if (noLog) { // else metrics tell
                logRarely(failureOf(request), e);
            }
            Answer other = e.isByFailure() ? Answer.STALLED_BY_FAILURE : Answer.STALLED;
            replace(out, mark, noLog ? Answer.NO_LOG : other, request);
        } catch (AttemptFailedException e) {
            replace(out, mark, Answer.ATTEMPT_FAILED, request);
        } catch (StoreClosedException e) {
            replace(out, mark, Answer.STOPPING, request);
        } catch (StoreFailedException e) {
            logRarely(failureOf(request), e);
            replace(out, mark, Answer.WRITES_REFUSED, request);
        } catch (Throwable e) {
            logRarely(failureOf(request), e);
            replace(out, mark, Answer.FAILED, request);
        } finally {
            if (slowOrNull != null) {
                slowOrNull.wasServed(request);
            }
        }
        if (span != 0) {
            Span.endIfProfiled(span, spanName(request));
        }
        answered(request, out.status());
        return true;
    }

    private void answered(Request request, int status) {
        long endNanos = System.nanoTime();
        metrics.answered(request, status, endNanos);
        if (slowOrNull != null) {
            slowOrNull.answered(request, status, endNanos);
        }
    }

    /// Gets the store ready for GETs of the first `gets` keys and PUTs and DELETEs of the first `writes`, which
    /// follow. Where one waits for no other there is nothing to gain.
    void prefetch(byte[][] keysToGet, int gets, byte[][] keysToWrite, int writes) {
        Store opened = store;
        if (opened == null) {
            return;
        }
        try {
            if (gets > 1) {
                opened.prefetchGets(keysToGet, gets);
            }
            if (writes > 1) {
                opened.prefetchWrites(keysToWrite, writes);
            }
        } catch (Throwable e) { // the requests are answered all the same
            logRarely("prefetch failed", e);
        }
    }

    /// Begins the first `count` of these PUTs and DELETEs, which are answered next, where they would wait for
    /// the disk one after the other.
    void begin(Request[] writes, int count) {
        if (count < 2 || !writesWaitForDisk()) {
            return;
        }
        Store opened = store;
        for (int i = 0; i < count; i++) {
            writes[i].begun = begin(opened, writes[i]);
            if (slowOrNull != null && writes[i].begun != null) {
                slowOrNull.begins(writes[i]);
            }
        }
    }

    boolean writesWaitForDisk() {
        Store opened = store;
        return opened != null && opened.writesWaitForDisk();
    }

    boolean readsWaitForDisk() {
        Store opened = store;
        return opened != null && opened.readsWaitForDisk();
    }

    /// Null when it would wait for flush or compaction. What it throws is thrown to the request that it belongs
    /// to.
    private static PendingWrite begin(Store store, Request write) {
        try {
            return store.tryBegin(write.key, write.method == Request.Method.DELETE ? null : write.value);
        } catch (RuntimeException | Error e) {
            return () -> {
                throw e;
            };
        }
    }

    /// Answers without a call of the store.
    void refuse(Answer answer, Request request, Output out) {
        closeIfStopping(request);
        out.answer(answer, request);
        answered(request, answer.status());
    }

    private void closeIfStopping(Request request) {
        if (stopping) {
            request.keepAlive = false;
        }
    }

    /// False when the request would have to wait for longer than it may.
    private boolean route(Request request, Output out, Patience patience) {
        switch (request.target) {
            case ENTITY -> {
                Store opened = store;
                if (opened == null) {
                    out.answer(Answer.STARTING, request);
                } else {
                    return entity(opened, request, out, patience);
                }
            }
            case ENTITIES -> {
                Store opened = store;
                if (opened == null) {
                    out.answer(Answer.STARTING, request);
                } else {
                    entities(opened, request, out);
                }
            }
            case ENTITIES_GET, ENTITIES_BATCH -> {
                Store opened = store;
                if (opened == null) {
                    out.answer(Answer.STARTING, request);
                } else if (request.target == Target.ENTITIES_GET) {
                    batches.get(opened, request, out);
                } else {
                    batches.write(opened, request, out);
                }
            }
            case STATUS, READY -> out.answer(readiness(), request);
            case METRICS -> metrics.write(store, request, out);
            case LIVE -> out.answer(Answer.LIVE, request);
            case ADMIN_FLUSH, ADMIN_COMPACT, ADMIN_CHECKPOINT, ADMIN_IDLE, ADMIN_OTHER -> {
                Store opened = store;
                if (adminOrNull == null) {
                    out.answer(Answer.ADMIN_OFF, request);
                } else if (opened == null) {
                    out.answer(Answer.STARTING, request);
                } else {
                    adminOrNull.answer(opened, request, out);
                }
            }
            case OTHER -> out.answer(Answer.UNKNOWN_PATH, request);
        }
        return true;
    }

    /// Whether this process is the right one to send requests to.
    private Answer readiness() {
        Store opened = store;
        if (stopping || opened == null) {
            return stopping ? Answer.STOPPING : Answer.STARTING;
        }
        return opened.isWritable() ? Answer.READY : Answer.NOT_WRITABLE;
    }

    private static boolean entity(Store store, Request request, Output out, Patience patience) {
        switch (request.method) {
            case GET -> {
                byte[] value =
                        patience == Patience.NONE ? store.tryGet(request.key, out.valueRoom()) : store.get(request.key);
                if (value == Store.WOULD_WAIT) {
                    return false;
                } else if (value == null) {
                    out.answer(Answer.NOT_FOUND, request);
                } else {
                    out.value(value, request);
                }
            }
            case PUT -> {
                return write(store, request, request.value, patience) && given(Answer.CREATED, request, out);
            }
            case DELETE -> {
                return write(store, request, null, patience) && given(Answer.ACCEPTED, request, out);
            }
            case POST, HEAD, OTHER -> out.answer(Answer.ENTITY_METHOD, request);
        }
        return true;
    }

    private static boolean write(Store store, Request request, byte[] valueOrNull, Patience patience) {
        PendingWrite begun = request.begun;
        if (begun == null) {
            begun = patience == Patience.ANY
                    ? store.begin(request.key, valueOrNull)
                    : store.tryBegin(request.key, valueOrNull);
        }
        if (begun == null) {
            return false;
        }
        begun.await();
        return true;
    }

    private static boolean given(Answer answer, Request request, Output out) {
        out.answer(answer, request);
        return true;
    }

    private void entities(Store store, Request request, Output out) {
        MemoryBudget.Share memory = request.memory.share();
        if (!memory.growTo(RangeStream.BUFFER_BYTES)) {
            out.answer(Answer.MEMORY_FULL, request);
            return;
        }
        RangeCursor cursor = null;
        try {
            cursor = new LimitedCursor(store.range(request.key, request.end), request.limit);
            if (!request.http11) {
                request.keepAlive = false; // the end of the connection is the end of the answer
            }
            out.stream(new RangeStream(cursor, memory, request));
            cursor = null;
        } finally {
            if (out.stream() == null) {
                memory.giveBack();
            }
            if (cursor != null) {
                cursor.close();
            }
        }
    }

    private static void replace(Output out, int mark, Answer answer, Request request) {
        out.backTo(mark);
        out.answer(answer, request);
    }

    private static String failureOf(Request request) {
        return "request failed: method=" + request.method + ", target=" + request.target;
    }

    private void logRarely(String what, Throwable e) {
        if (logged.isDue()) {
            log.error(what + ": " + StoreException.reasonOf(e), StoreException.traceOrNull(e));
        }
    }

    private static String spanName(Request request) {
        return switch (request.target) {
            case ENTITY ->
                switch (request.method) {
                    case GET -> "GET /v0/entity";
                    case PUT -> "PUT /v0/entity";
                    case DELETE -> "DELETE /v0/entity";
                    case POST, HEAD, OTHER -> "other";
                };
            case ENTITIES -> "GET /v0/entities";
            default -> "other";
        };
    }
}
