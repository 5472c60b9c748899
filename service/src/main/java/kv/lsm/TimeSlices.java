package kv.lsm;

import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;

/// Lets a background thread that computes for long, as flush and compaction do, give way: it works for slices
/// of a tenth of a millisecond, and between two it yields the processor, unless it is behind and writers would
/// soon have to wait for it. The thread calls [#step] after each entry; everything else happens here.
///
/// A thread that only computes is not interrupted for one that wakes up: Linux 6.18 lets it finish its slice,
/// up to three ticks of the scheduler, and requests that share its processor wait for up to 12 ms
/// (`docs/results/2026-11-23-service-steps.md`). A lower priority cannot be taken back without a privilege and starves
/// flush where all processors are busy. For one thread.
public final class TimeSlices {
    private static final long TURN_NANOS = 100_000;
    /// Reading the clock costs about as much as a step.
    private static final int STEPS_BETWEEN_LOOKS = 32;

    private final BooleanSupplier isBehind;
    private final LongSupplier nanoTime;
    private final Runnable giveWay;
    private int steps;
    private long start;

    /// @param isBehind true when writers will have to wait if this work does not end soon
    TimeSlices(BooleanSupplier isBehind) {
        this(isBehind, System::nanoTime, Thread::yield);
    }

    TimeSlices(BooleanSupplier isBehind, LongSupplier nanoTime, Runnable giveWay) {
        this.isBehind = isBehind;
        this.nanoTime = nanoTime;
        this.giveWay = giveWay;
        start = nanoTime.getAsLong();
    }

    /// For work that never gives way: somebody waits for it.
    public static TimeSlices endless() {
        return new TimeSlices(() -> true);
    }

    /// Between two pieces of something that no [TimeSlices] are at hand for: yields the processor where the thread
    /// is one of the store's. A thread that answers requests may do such work, too, and goes on.
    public static void giveWay() {
        if (Threads.isOfStore()) {
            Thread.yield();
        }
    }

    /// True while the work does not give way.
    public boolean isBehind() {
        return isBehind.getAsBoolean();
    }

    /// To be called after each small piece of work; only one in so many looks at the clock.
    public void step() {
        if (++steps < STEPS_BETWEEN_LOOKS) {
            return;
        }
        checkTime();
    }

    /// To be called after a piece of work that takes longer than reading the clock.
    public void checkTime() {
        steps = 0;
        long now = nanoTime.getAsLong();
        if (now - start < TURN_NANOS) {
            return;
        }
        if (!isBehind.getAsBoolean()) {
            giveWay.run();
            now = nanoTime.getAsLong();
        }
        start = now;
    }
}
