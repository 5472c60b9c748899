package kv.lsm;

import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;
import java.util.function.LongSupplier;

/// Holds compaction to a rate, in bytes of merged entries per second, so that requests keep disk and processor.
///
/// The limit ends where writers would pay for it: while compaction is behind it runs as fast as it can. Time in
/// which nothing was compacted is not saved up for a burst. For one thread.
final class CompactionRate {
    /// Shorter sleeps are saved up: the kernel's timers are not finer.
    private static final long SLEEP_NANOS_MIN = 1_000_000;
    /// A stop, or being behind, is noticed within this time.
    private static final long SLEEP_NANOS_MAX = 10_000_000;

    /// Time that merging took itself counts as slept; longer, nothing was merged.
    private static final long CREDIT_NANOS_MAX = 100_000_000;

    private final long bytesPerSecond;
    private final BooleanSupplier isBehind;
    private final LongSupplier nanoTime;
    private final LongConsumer sleepNanos;
    private long bytesUncharged;
    private long paidUntilNanos;

    /// @param bytesPerSecond 0 for no limit
    /// @param isBehind true when writers will have to wait if compaction does not end soon
    CompactionRate(long bytesPerSecond, BooleanSupplier isBehind) {
        this(bytesPerSecond, isBehind, System::nanoTime, LockSupport::parkNanos);
    }

    CompactionRate(long bytesPerSecond, BooleanSupplier isBehind, LongSupplier nanoTime, LongConsumer sleepNanos) {
        this.bytesPerSecond = bytesPerSecond;
        this.isBehind = isBehind;
        this.nanoTime = nanoTime;
        this.sleepNanos = sleepNanos;
        paidUntilNanos = nanoTime.getAsLong();
    }

    /// Accounts for `bytes` that were merged, and sleeps when that was faster than allowed; ends early when
    /// told to `stop`.
    void spend(long bytes, BooleanSupplier stop) {
        if (bytesPerSecond == 0) {
            return;
        }
        bytesUncharged += bytes;
        long cost = (long) (bytesUncharged * 1e9 / bytesPerSecond);
        if (cost >= SLEEP_NANOS_MIN) { // reading the clock for each entry would cost more than merging it
            bytesUncharged = 0;
            charge(cost, stop);
        }
    }

    private void charge(long cost, BooleanSupplier stop) {
        long now = nanoTime.getAsLong();
        paidUntilNanos = Math.max(paidUntilNanos, now - CREDIT_NANOS_MAX) + cost;
        while (paidUntilNanos - now > 0) {
            if (stop.getAsBoolean() || isBehind.getAsBoolean()) {
                paidUntilNanos = now;
                return;
            }
            sleepNanos.accept(Math.min(paidUntilNanos - now, SLEEP_NANOS_MAX));
            now = nanoTime.getAsLong();
        }
    }
}
