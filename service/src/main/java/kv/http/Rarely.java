package kv.http;

import java.util.concurrent.atomic.AtomicLong;

/// Lets through one of many log lines that say the same: at most one in each interval. Thread-safe.
final class Rarely {
    private final long intervalNanos;
    private final AtomicLong lastNanos;

    Rarely(long intervalNanos) {
        this.intervalNanos = intervalNanos;
        lastNanos = new AtomicLong(System.nanoTime() - intervalNanos);
    }

    static Rarely onceASecond() {
        return new Rarely(1_000_000_000L);
    }

    static Rarely onceAMinute() {
        return new Rarely(60_000_000_000L);
    }

    /// True when the line is to be written.
    boolean isDue() {
        long now = System.nanoTime();
        long last = lastNanos.get();
        return now - last >= intervalNanos && lastNanos.compareAndSet(last, now);
    }
}
