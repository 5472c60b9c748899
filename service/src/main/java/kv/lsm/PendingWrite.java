package kv.lsm;

/// A write that was begun: [Store#begin].
@FunctionalInterface
public interface PendingWrite {
    /// A write that is acknowledged already.
    PendingWrite DONE = () -> {};

    /// Returns when the write is acknowledged, as if [Store#put] or [Store#delete] had returned. To be called
    /// once, by any thread.
    ///
    /// Throws what those throw.
    void await();
}
