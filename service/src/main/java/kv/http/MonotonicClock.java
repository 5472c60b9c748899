package kv.http;

/// The time that limits are counted in: no one can set it, so a corrected wall clock neither closes a
/// connection nor keeps one open.
final class MonotonicClock {
    /// Zero, which stands for "never", is longer ago than any limit that an option can set.
    private static final long FIRST_MILLIS = 1L + Integer.MAX_VALUE;

    private static final long START_NANOS = System.nanoTime();

    private MonotonicClock() {}

    /// Milliseconds since a moment in the past; always positive.
    static long millis() {
        return millisAt(System.nanoTime());
    }

    /// As [#millis], of the moment `nanoTime` of [System#nanoTime].
    static long millisAt(long nanoTime) {
        return FIRST_MILLIS + (nanoTime - START_NANOS) / 1_000_000;
    }
}
