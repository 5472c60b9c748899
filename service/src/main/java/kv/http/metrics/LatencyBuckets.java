package kv.http.metrics;

/// The log-linear buckets of a latency: each power of two from 1 024 ns to 8.6 s is cut into four of the same
/// width, so that a bucket is at most a quarter wider than where it begins.
///
/// ```
/// bucket   0          1               2               …  4               …  93
/// holds    ≤ 1.024    1.024 – 1.28    1.28 – 1.536    …  1.792 – 2.048   …  > 8.6 s      in µs
/// ```
///
/// A bucket holds its upper bound and not its lower one, as Prometheus' `le` wants it.
public final class LatencyBuckets {
    private static final int FIRST_EXPONENT = 10;
    private static final int OCTAVES = 23;
    private static final int PER_OCTAVE_BITS = 2;
    private static final int PER_OCTAVE = 1 << PER_OCTAVE_BITS;
    /// With the first, which has no lower bound, and the last, which has no upper one.
    public static final int COUNT = OCTAVES * PER_OCTAVE + 2;

    private LatencyBuckets() {}

    /// The bucket of a latency.
    public static int of(long nanos) {
        long below = nanos - 1;
        if (below < 1 << FIRST_EXPONENT) {
            return 0;
        }
        int exponent = Long.SIZE - 1 - Long.numberOfLeadingZeros(below);
        int part = (int) (below >>> exponent - PER_OCTAVE_BITS) & PER_OCTAVE - 1;
        return Math.min(1 + (exponent - FIRST_EXPONENT) * PER_OCTAVE + part, COUNT - 1);
    }

    /// The largest latency that a bucket holds, or [Long#MAX_VALUE] of the last.
    public static long upperBoundNanos(int bucket) {
        if (bucket == COUNT - 1) {
            return Long.MAX_VALUE;
        }
        return (long) (PER_OCTAVE + bucket % PER_OCTAVE) << FIRST_EXPONENT + bucket / PER_OCTAVE - PER_OCTAVE_BITS;
    }
}
