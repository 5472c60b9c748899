package kv.http.metrics;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReferenceArray;

/// Counts latencies of many series at once, each in [LatencyBuckets].
///
/// 1. [#record] takes no lock and allocates nothing but the first time that a series is seen by threads of one
///    stripe.
/// 2. Threads are spread over stripes, so that selectors do not take each other's counters from the cache.
/// 3. A [#snapshot] taken meanwhile may hold a latency in its count and not yet in its sum.
public final class LatencyHistograms {
    private static final int STRIPES = 16;
    /// Behind the buckets: nanoseconds.
    private static final int SUM = LatencyBuckets.COUNT;

    private final AtomicReferenceArray<AtomicLongArray> counts;
    private final int series;

    /// What one series has counted.
    ///
    /// @param buckets latencies by bucket, not added up
    public record Snapshot(long[] buckets, long sumNanos) {
        public long count() {
            long count = 0;
            for (long bucket : buckets) {
                count += bucket;
            }
            return count;
        }
    }

    /// @param series numbers from 0 that [#record] is called with
    public LatencyHistograms(int series) {
        this.series = series;
        counts = new AtomicReferenceArray<>(series * STRIPES);
    }

    public void record(int ofSeries, long nanos) {
        int index = (int) (Thread.currentThread().threadId() & STRIPES - 1) * series + ofSeries;
        AtomicLongArray own = counts.getPlain(index); // once it is there, it never changes
        if (own == null) {
            counts.compareAndSet(index, null, new AtomicLongArray(LatencyBuckets.COUNT + 1));
            own = counts.get(index);
        }
        own.getAndIncrement(LatencyBuckets.of(nanos));
        own.getAndAdd(SUM, nanos);
    }

    /// Null when nothing was recorded.
    public Snapshot snapshot(int ofSeries) {
        long[] buckets = null;
        long sum = 0;
        for (int stripe = 0; stripe < STRIPES; stripe++) {
            AtomicLongArray part = counts.get(stripe * series + ofSeries);
            if (part != null) {
                buckets = buckets == null ? new long[LatencyBuckets.COUNT] : buckets;
                for (int i = 0; i < buckets.length; i++) {
                    buckets[i] += part.get(i);
                }
                sum += part.get(SUM);
            }
        }
        return buckets == null ? null : new Snapshot(buckets, sum);
    }
}
