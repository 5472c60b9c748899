package kv.lsm;

import java.util.concurrent.atomic.AtomicReference;

/// The first I/O error that ended writing. Thread-safe.
final class Failure {
    private record Cause(String what, Throwable error) {}

    private final AtomicReference<Cause> first = new AtomicReference<>();
    private volatile boolean told;

    void set(String what, Throwable error) {
        first.compareAndSet(null, new Cause(what, error));
    }

    boolean isSet() {
        return first.get() != null;
    }

    /// @throws StoreFailedException when writing has ended and no caller of the store was told yet
    void checkUntold() {
        if (!told) {
            check();
        }
    }

    /// @throws StoreFailedException when writing has ended
    void check() {
        Cause cause = first.get();
        if (cause != null) {
            told = true;
            throw new StoreFailedException(
                    "the store takes no more writes: " + cause.what + ": " + cause.error.getMessage()
                            + "\nfree the disk or replace it, then open the store again",
                    cause.error);
        }
    }
}
