package kv.lsm;

/// How durable a write is when it is acknowledged.
public enum WalMode {
    /// No write-ahead log: an orderly close keeps everything, a killed process loses the memtables.
    NONE,
    /// Handed to the operating system: survives the end of the process, not of the machine.
    OS,
    /// As [#OS], and made durable every [StoreOptions#walInterval()]: a dead machine loses at most that much
    /// time.
    INTERVAL,
    /// Durable before it is acknowledged: survives a power cut. Writers that wait at the same time share one
    /// sync.
    ALWAYS
}
