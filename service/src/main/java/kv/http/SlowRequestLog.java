package kv.http;

import java.util.Locale;
import java.util.function.Consumer;
import kv.lsm.Escaped;
import kv.lsm.Waits;
import kv.lsm.disk.MajorFaults;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// A line for each request that took long, which says what it waited for. At most [#LINES_PER_SECOND_MAX]
/// lines a second are written; the next one, or the end of the server, tells how many were left out.
///
/// How long page faults took nobody knows, so they are counted: their time is part of `own_ms`, and of `round_ms`
/// where a round's prefetch met them.
final class SlowRequestLog {
    static final int LINES_PER_SECOND_MAX = 10;

    private static final Logger log = LoggerFactory.getLogger(SlowRequestLog.class);
    private static final long SECOND_NANOS = 1_000_000_000;
    private static final int KEY_BYTES_SHOWN = 64;

    /// where lines go, so that a test can read them
    volatile Consumer<String> lines = log::warn;
    private final long slowNanos;
    private long secondBeganNanos;
    private int linesOfSecond;
    private long leftOut;

    private SlowRequestLog(long slowNanos) {
        this.slowNanos = slowNanos;
        secondBeganNanos = System.nanoTime() - SECOND_NANOS;
    }

    /// @param slowMillis shortest time that a request of the log takes; 0 for no log, null
    static SlowRequestLog orNull(int slowMillis) {
        return slowMillis == 0 ? null : new SlowRequestLog(slowMillis * 1_000_000L);
    }

    /// The calling thread has begun the write, and answers it later.
    void begins(Request request) {
        waitsOf(request).begins(Waits.ofThread());
    }

    void handsOver(Request request) {
        waitsOf(request).handsOver(request.startNanos, System.nanoTime());
    }

    /// The calling thread has prefetched for the first `count` of these.
    ///
    /// @param beforeOrNull the thread's page faults before that
    void prefetched(Request[] requests, int count, MajorFaults beforeOrNull) {
        MajorFaults nowOrNull = MajorFaults.ofThreadOrNull();
        for (int i = 0; i < count; i++) {
            waitsOf(requests[i]).prefetched(beforeOrNull, nowOrNull);
        }
    }

    void isServed(Request request) {
        waitsOf(request)
                .isServed(request.startNanos, System.nanoTime(), Waits.ofThread(), MajorFaults.ofThreadOrNull());
    }

    void wasServed(Request request) {
        waitsOf(request).wasServed(Waits.ofThread(), MajorFaults.ofThreadOrNull());
    }

    private static RequestWaits waitsOf(Request request) {
        if (request.waits == null) {
            request.waits = new RequestWaits();
        }
        return request.waits;
    }

    void answered(Request request, int status, long endNanos) {
        long totalNanos = endNanos - request.startNanos;
        if (totalNanos < slowNanos) {
            return;
        }
        long leftOutBefore = enter(endNanos);
        if (leftOutBefore >= 0) {
            String line = line(request, status, totalNanos);
            lines.accept(leftOutBefore == 0 ? line : line + ", left_out_before=" + leftOutBefore);
        }
    }

    /// How many lines were left out before this one, or -1 when it is to be left out too.
    private synchronized long enter(long nowNanos) {
        if (nowNanos - secondBeganNanos >= SECOND_NANOS) {
            secondBeganNanos = nowNanos;
            linesOfSecond = 0;
        }
        if (linesOfSecond == LINES_PER_SECOND_MAX) {
            leftOut++;
            return -1;
        }
        linesOfSecond++;
        long before = leftOut;
        leftOut = 0;
        return before;
    }

    /// No more requests come.
    void end() {
        long rest;
        synchronized (this) {
            rest = leftOut;
            leftOut = 0;
        }
        if (rest > 0) {
            lines.accept("slow requests left out at the end: count=" + rest);
        }
    }

    private static String line(Request request, int status, long totalNanos) {
        RequestWaits waits = waitsOf(request);
        return "slow request: method=" + request.method + ", target=" + target(request) + ", status=" + status
                + millis(", total_ms", totalNanos) + millis(", stall_ms", waits.stallNanos())
                + millis(", sync_ms", waits.syncNanos()) + millis(", round_ms", waits.roundNanos())
                + millis(", queue_ms", waits.queueNanos()) + millis(", disk_ms", waits.diskNanos())
                + millis(", own_ms", waits.ownNanos(totalNanos))
                + (waits.faults() == RequestWaits.UNKNOWN ? "" : ", page_faults=" + waits.faults());
    }

    private static String millis(String name, long nanos) {
        return String.format(Locale.ROOT, "%s=%.3f", name, nanos / 1e6);
    }

    /// Path and parameters as the parser understood them: the request's own bytes are gone.
    private static String target(Request request) {
        String path = request.target.path();
        if (request.key == null) {
            return path;
        }
        String name = switch (request.target) {
            case ENTITY -> "?id=";
            case ENTITIES -> "?start=";
            case METRICS -> "?prefix=";
            case ADMIN_CHECKPOINT -> "?dir=";
            default -> "?key=";
        };
        String end = request.end == null ? "" : "&end=" + Escaped.of(request.end, KEY_BYTES_SHOWN);
        return path + name + Escaped.of(request.key, KEY_BYTES_SHOWN) + end;
    }
}
