package kv.http;

import kv.lsm.Waits;
import kv.lsm.disk.MajorFaults;

/// What one request waits for on its way to its answer, in nanoseconds, and in how many page faults.
///
/// ```
/// found ready ── round ──► [handed over ── queue ──►] served: stall, sync, disk, the rest ──► answered
/// ```
///
/// A write that turns out to be stalled is handed over, and served, once more. For one thread at a time.
final class RequestWaits {
    /// Instead of a number of page faults, when nobody can tell.
    static final long UNKNOWN = -1;

    private boolean leftRound;
    private boolean handedOver;
    private boolean begun;
    private long handedOverNanos;
    private long stallNanosBefore;
    private long syncNanosBefore;
    private long diskNanosBefore;
    private MajorFaults faultsBeforeOrNull;
    private long roundNanos;
    private long queueNanos;
    private long stallNanos;
    private long syncNanos;
    private long diskNanos;
    private long faults;

    void clear() {
        leftRound = false;
        handedOver = false;
        begun = false;
        roundNanos = 0;
        queueNanos = 0;
        stallNanos = 0;
        syncNanos = 0;
        diskNanos = 0;
        faults = 0;
    }

    /// The calling thread has fetched from memory what this request and others of its round will look at: each
    /// has waited for all of that.
    void prefetched(MajorFaults beforeOrNull, MajorFaults nowOrNull) {
        addFaults(beforeOrNull, nowOrNull);
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
    void isServed(long startNanos, long nowNanos, Waits ofThread, MajorFaults faultsOrNull) {
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
        diskNanosBefore = ofThread.diskNanos();
        faultsBeforeOrNull = faultsOrNull;
    }

    private void leaveRound(long startNanos, long nowNanos) {
        if (!leftRound) {
            leftRound = true;
            roundNanos = nowNanos - startNanos;
        }
    }

    /// The thread that serves it is done, with the answer or without.
    void wasServed(Waits ofThread, MajorFaults faultsOrNull) {
        stallNanos += ofThread.stallNanos() - stallNanosBefore;
        syncNanos += ofThread.syncNanos() - syncNanosBefore;
        diskNanos += ofThread.diskNanos() - diskNanosBefore;
        addFaults(faultsBeforeOrNull, faultsOrNull);
    }

    /// A virtual thread that went on on another thread of the system has two counts that say nothing together.
    private void addFaults(MajorFaults beforeOrNull, MajorFaults nowOrNull) {
        if (beforeOrNull == null || nowOrNull == null || beforeOrNull.thread() != nowOrNull.thread()) {
            faults = UNKNOWN;
        } else if (faults != UNKNOWN) {
            faults += nowOrNull.count() - beforeOrNull.count();
        }
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

    long diskNanos() {
        return diskNanos;
    }

    /// Page faults in which it waited for the disk, or [#UNKNOWN].
    long faults() {
        return faults;
    }

    /// What is left of `totalNanos`.
    long ownNanos(long totalNanos) {
        return Math.max(0, totalNanos - roundNanos - queueNanos - stallNanos - syncNanos - diskNanos);
    }
}
