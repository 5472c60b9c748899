package kv;

import java.time.Duration;
import java.util.function.BooleanSupplier;

/// Waits for what another thread brings about. Not a measurement: the limit only ends a test that would hang.
public final class Eventually {
    private static final Duration LIMIT = Duration.ofMinutes(2);

    private Eventually() {}

    public static void holds(BooleanSupplier condition) {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("did not come about within " + LIMIT);
            }
            try {
                Thread.sleep(5);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }
}
