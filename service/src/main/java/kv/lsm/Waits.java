package kv.lsm;

/// What one thread's calls of stores have waited for, summed up since the thread first called [#ofThread].
/// Who wants to know it of one call takes the sums before and after.
///
/// Only for threads that have asked does a wait read the clock; for others it costs a look at a thread-local,
/// when it occurs. For use on its own thread only.
public final class Waits {
    private static final ThreadLocal<Waits> KEPT = new ThreadLocal<>();

    private long stallNanos;
    private long syncNanos;

    private Waits() {}

    /// The calling thread's; kept from now on.
    public static Waits ofThread() {
        Waits waits = KEPT.get();
        if (waits == null) {
            waits = new Waits();
            KEPT.set(waits);
        }
        return waits;
    }

    /// The calling thread's, or null when it has not asked for any.
    static Waits keptOrNull() {
        return KEPT.get();
    }

    void stalled(long nanos) {
        stallNanos += nanos;
    }

    void synced(long nanos) {
        syncNanos += nanos;
    }

    /// Held back until flush or compaction had caught up.
    public long stallNanos() {
        return stallNanos;
    }

    /// Waited until a write-ahead log was synced, by this thread or another.
    public long syncNanos() {
        return syncNanos;
    }
}
