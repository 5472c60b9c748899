package kv.lsm;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;

/// Holds writers back when flush or compaction cannot follow: first slows them down, then stops them.
///
/// 1. Slowed down: writers share a rate; who would exceed it sleeps before it takes any lock.
/// 2. Stopped: the writer that needs a new memtable waits, and all others behind it.
/// 3. Who is stopped for longer than the limit gets a [WriteStalledException]; its write was not applied. Who is
///    slowed down sleeps no longer than the limit, and then writes.
final class WriteStall {
    /// Shorter sleeps are saved up: the kernel's timers are not finer.
    private static final long SLEEP_NANOS_MIN = 1_000_000;

    private final StoreOptions options;
    private final Counters counters;
    private final AtomicLong paidUntilNanos = new AtomicLong(System.nanoTime());

    WriteStall(StoreOptions options, Counters counters) {
        this.options = options;
        this.counters = counters;
    }

    private boolean watchesLevel0() {
        return options.compaction() != CompactionPolicyKind.NONE;
    }

    boolean isSlow(ReadView view) {
        return view.level0Runs() >= options.level0Slowdown() && watchesLevel0();
    }

    /// Sleeps as long as a write of `bytes` has to while writers are slowed down.
    void slowDown(long bytes) {
        long now = System.nanoTime();
        long cost = costNanos(bytes);
        // Nobody sleeps longer than the limit: a larger debt would be paid by writes that come much later.
        long paid = paidUntilNanos.updateAndGet(until -> now + Math.min(Math.max(until - now, 0) + cost, limitNanos()));
        long sleep = paid - now;
        if (sleep >= SLEEP_NANOS_MIN) {
            StoreEvents.WriteStall event = begin(StallCause.LEVEL0_SLOWDOWN);
            for (long left = sleep; left > 0; left = now + sleep - System.nanoTime()) {
                LockSupport.parkNanos(left);
                if (Thread.currentThread().isInterrupted()) {
                    break; // the caller is told to hurry
                }
            }
            end(event, StallCause.LEVEL0_SLOWDOWN, now);
        }
    }

    /// True, and the write is charged for, when [#slowDown] would not sleep.
    boolean isPaid(long bytes) {
        long now = System.nanoTime();
        long until = paidUntilNanos.get();
        long paid = Math.max(until, now) + costNanos(bytes);
        return paid - now < SLEEP_NANOS_MIN && paidUntilNanos.compareAndSet(until, paid);
    }

    private long costNanos(long bytes) {
        return Math.max(1, (long) (bytes * 1e9 / options.slowdownBytesPerSecond()));
    }

    /// Why no new memtable may be started, or null when one may.
    StallCause stopCause(ReadView view) {
        if (view.frozenCount() >= options.frozenMemtablesMax()) {
            return StallCause.FROZEN_MEMTABLES;
        }
        return watchesLevel0() && view.level0Runs() >= options.level0Stop() ? StallCause.LEVEL0_STOP : null;
    }

    /// What a stopped writer asks again when it is woken.
    interface Question {
        /// Why the writer has to wait, or null when it need not.
        StallCause ask();

        /// Why what is waited for has failed and is tried again, or null.
        String reasonOrNull(StallCause cause);
    }

    /// Waits until there is no cause left.
    ///
    /// @param changed signalled, under the lock the caller holds, when the answer may be another
    void await(Question question, Condition changed) {
        StallCause cause = question.ask();
        if (cause == null) {
            return;
        }
        StallCause first = cause;
        StoreEvents.WriteStall event = begin(first);
        long start = System.nanoTime();
        boolean interrupted = false;
        try {
            while ((cause = question.ask()) != null) {
                long left = limitNanos() - (System.nanoTime() - start);
                if (left <= 0) {
                    throw new WriteStalledException(cause, options.stallLimit(), question.reasonOrNull(cause));
                }
                try {
                    changed.awaitNanos(left);
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        } finally {
            end(event, first, start);
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private long limitNanos() {
        Duration limit = options.stallLimit();
        return limit.isZero() ? Long.MAX_VALUE : limit.toNanos();
    }

    private static StoreEvents.WriteStall begin(StallCause cause) {
        StoreEvents.WriteStall event = new StoreEvents.WriteStall();
        event.cause = cause.label();
        event.begin();
        return event;
    }

    private void end(StoreEvents.WriteStall event, StallCause cause, long start) {
        event.commit();
        long nanos = System.nanoTime() - start;
        counters.stalled(cause, nanos);
        Waits waits = Waits.keptOrNull();
        if (waits != null) {
            waits.stalled(nanos);
        }
    }
}
