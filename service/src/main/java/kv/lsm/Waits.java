package kv.lsm;

/// What one thread's calls of stores have waited for, summed up since the thread first called [#ofThread].
/// Who wants to know it of one call takes the sums before and after.
///
/// Only for threads that have asked does a wait read the clock. For use on its own thread only.
public final class Waits {
    private static final ThreadLocal<Waits> KEPT = new ThreadLocal<>();
    /// Until a thread has asked, a wait looks at nothing else: a virtual thread would have to make its table of
    /// thread-locals first.
    private static volatile boolean anyKept;

    private long stallNanos;
    private long syncNanos;
    private long diskNanos;

    private Waits() {}

    /// The calling thread's; kept from now on.
    public static Waits ofThread() {
        Waits waits = KEPT.get();
        if (waits == null) {
            anyKept = true;
            waits = new Waits();
            KEPT.set(waits);
        }
        return waits;
    }

    /// The calling thread's, or null when it has not asked for any.
    public static Waits keptOrNull() {
        return anyKept ? KEPT.get() : null;
    }

    void stalled(long nanos) {
        stallNanos += nanos;
    }

    void synced(long nanos) {
        syncNanos += nanos;
    }

    /// For whoever reads files of the store.
    public void readFromDisk(long nanos) {
        diskNanos += nanos;
    }

    /// Held back until flush or compaction had caught up.
    public long stallNanos() {
        return stallNanos;
    }

    /// Waited until a write-ahead log was synced, by this thread or another.
    public long syncNanos() {
        return syncNanos;
    }

    /// Read tables by calls, from the disk or from the page cache.
    public long diskNanos() {
        return diskNanos;
    }
}
