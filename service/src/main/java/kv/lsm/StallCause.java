package kv.lsm;

/// Why a writer had to wait.
public enum StallCause {
    /// The active memtable is full and as many frozen ones as allowed still wait to be flushed.
    FROZEN_MEMTABLES("frozen_memtables"),
    /// Level 0 has so many sorted runs that writers are slowed down.
    LEVEL0_SLOWDOWN("level0_slowdown"),
    /// Level 0 has so many sorted runs that writers are stopped.
    LEVEL0_STOP("level0_stop"),
    /// The active memtable is full and no log could be made for the next, as on a full disk.
    NO_LOG("no_log");

    private final String label;

    StallCause(String label) {
        this.label = label;
    }

    /// The name in metrics and events.
    public String label() {
        return label;
    }
}
