package kv.lsm;

import java.util.concurrent.atomic.AtomicReference;

/// The first I/O error that ended writing, which the log tells at once. Thread-safe.
final class Failure {
    private static final System.Logger LOGGER = System.getLogger(Failure.class.getName());

    private record Cause(String what, Throwable error) {
        String line() {
            return "the store takes no more writes: " + what + ": " + StoreException.reasonOf(error) + "; "
                    + adviceFor(error);
        }
    }

    private final AtomicReference<Cause> first = new AtomicReference<>();
    private volatile boolean told;
    private volatile Runnable whenSet = () -> {};

    /// @param action run once, by a thread of its own, when the error came: whoever notes it may hold locks
    /// that the action needs
    void whenSet(Runnable action) {
        whenSet = action;
    }

    void set(String what, Throwable error) {
        Cause cause = new Cause(what, error);
        if (first.compareAndSet(null, cause)) {
            Threads.start("kv-failed", () -> {
                whenSet.run();
                Retry.tell(LOGGER, System.Logger.Level.ERROR, cause.line(), StoreException.traceOrNull(error));
            });
        }
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

    /// To be asked for a caller of the store.
    ///
    /// @throws StoreFailedException when writing has ended
    void check() {
        if (isSet()) {
            told = true;
            checkQuietly();
        }
    }

    /// What is damaged is damaged still when it is opened again.
    private static String adviceFor(Throwable error) {
        return error instanceof CorruptionException
                ? "stop the service, then kv.Tool verify names what is damaged, and kv.Tool repair keeps the rest"
                : "free the disk or replace it, then open the store again";
    }

    /// To be asked by the store's own threads.
    ///
    /// @throws StoreFailedException when writing has ended
    void checkQuietly() {
        Cause cause = first.get();
        if (cause != null) {
            throw new StoreFailedException(cause.line(), cause.error);
        }
    }
}
