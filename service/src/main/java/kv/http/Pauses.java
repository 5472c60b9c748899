package kv.http;

/// Notices that the whole process stood still, for a collection or because the machine gave its processors
/// to others: what clients sent meanwhile lies unread, and their silence is ours. A thread that looks again
/// and again after a wait tells when; if it comes late, all clients get as much time as was lost before they
/// are judged. For one thread.
final class Pauses {
    /// Threads that wait wake up later than asked for by less than that.
    static final long LATE_MILLIS_MIN = 50;

    private long judgeFromMillis;

    /// The thread is awake at `nowMillis`: something woke it, or `waitMillis` have passed since `beganMillis`.
    ///
    /// @return false while clients are not to be judged yet
    boolean mayJudge(long beganMillis, long waitMillis, long nowMillis) {
        long lateMillis = nowMillis - beganMillis - waitMillis;
        if (lateMillis >= LATE_MILLIS_MIN) {
            judgeFromMillis = nowMillis + Math.min(lateMillis, MemoryReclaimer.WASTED_MILLIS_MIN);
        }
        return nowMillis >= judgeFromMillis;
    }
}
