package kv.lsm;

import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;

/// Turns of a tenth of a millisecond in which flush or compaction works before it lets others have the processor, as long as it is not behind.
///
/// A thread that only computes is not interrupted for one that wakes up: Linux 6.18 lets it finish its slice, up to three ticks of the
/// scheduler, and requests that share its processor wait for up to 12 ms (`service/docs/service-benchmark.md`). A lower priority cannot
/// be taken back without a privilege and starves flush where all processors are busy. For one thread.
public final class Turns {
    private static final long TURN_NANOS = 100_000;
    /// Reading the clock costs about as much as a step.
    private static final int STEPS_BETWEEN_LOOKS = 32;

    private final BooleanSupplier isBehind;
    private final LongSupplier nanoTime;
    private final Runnable giveWay;
    private int steps;
    private long start;

    /// @param isBehind true when writers will have to wait if this work does not end soon
    Turns(BooleanSupplier isBehind) {
        this(isBehind, System::nanoTime, Thread::yield);
    }

    Turns(BooleanSupplier isBehind, LongSupplier nanoTime, Runnable giveWay) {
        this.isBehind = isBehind;
        this.nanoTime = nanoTime;
        this.giveWay = giveWay;
        start = nanoTime.getAsLong();
    }

    /// Turns without an end.
    public static Turns endless() {
        return new Turns(() -> true);
    }

    /// To be called after each small piece of work; only one in so many looks at the clock.
    public void step() {
        if (++steps < STEPS_BETWEEN_LOOKS) {
            return;
        }
        look();
    }

    /// To be called after a piece of work that takes longer than reading the clock.
    public void look() {
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
