package kv.http;

import kv.lsm.Waits;

/// What one request waits for on its way to its answer, in nanoseconds.
///
/// ```
/// found ready ── round ──► [handed over ── queue ──►] served: stall, sync, the rest ──► answered
/// ```
///
/// A write that turns out to be stalled is handed over, and served, once more. For one thread at a time.
final class RequestWaits {
    private boolean leftRound;
    private boolean handedOver;
    private boolean begun;
    private long handedOverNanos;
    private long stallNanosBefore;
    private long syncNanosBefore;
    private long roundNanos;
    private long queueNanos;
    private long stallNanos;
    private long syncNanos;

    void clear() {
        leftRound = false;
        handedOver = false;
        begun = false;
        roundNanos = 0;
        queueNanos = 0;
        stallNanos = 0;
        syncNanos = 0;
    }

    /// Its write is in the log, and the thread goes on to serve others of its round: what they wait for
    /// a sync, this one waits for it too.
    void begins(Waits ofThread) {
        begun = true;
        syncNanosBefore = ofThread.syncNanos();
    }

    /// @param startNanos when the connection was found ready
    void handsOver(long startNanos, long nowNanos) {
        leaveRound(startNanos, nowNanos);
        handedOver = true;
        handedOverNanos = nowNanos;
    }

    /// As [#handsOver]; from now on the calling thread serves it.
    void isServed(long startNanos, long nowNanos, Waits ofThread) {
        leaveRound(startNanos, nowNanos);
        if (handedOver) {
            queueNanos += nowNanos - handedOverNanos;
            handedOver = false;
        }
        if (begun) {
            long synced = Math.min(ofThread.syncNanos() - syncNanosBefore, roundNanos);
            roundNanos -= synced;
            syncNanos += synced;
            begun = false;
        }
        stallNanosBefore = ofThread.stallNanos();
        syncNanosBefore = ofThread.syncNanos();
    }

    private void leaveRound(long startNanos, long nowNanos) {
        if (!leftRound) {
            leftRound = true;
            roundNanos = nowNanos - startNanos;
        }
    }

    /// The thread that serves it is done, with the answer or without.
    void wasServed(Waits ofThread) {
        stallNanos += ofThread.stallNanos() - stallNanosBefore;
        syncNanos += ofThread.syncNanos() - syncNanosBefore;
    }

    long roundNanos() {
        return roundNanos;
    }

    long queueNanos() {
        return queueNanos;
    }

    long stallNanos() {
        return stallNanos;
    }

    long syncNanos() {
        return syncNanos;
    }

    /// What is left of `totalNanos`.
    long ownNanos(long totalNanos) {
        return Math.max(0, totalNanos - roundNanos - queueNanos - stallNanos - syncNanos);
    }
}
