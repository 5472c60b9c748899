package kv.lsm;

/// Which tables are merged, and when; see `service/docs/compaction.md`.
public enum CompactionPolicyKind {
    /// Each level is one sorted run, ten times the level above: cheap reads and little space, more rewriting.
    LEVELED,
    /// Runs of like size are merged: least rewriting, more runs to read and up to twice the space.
    TIERED,
    /// Nothing is merged: for experiments; reads slow down and space grows with every flush.
    NONE
}
