package kv.lsm.disk;

/// How much of its files this process can have in memory, and whether that is enough.
public interface FileMemory {
    /// Bytes of files that the system can keep in memory for this process, those included that it keeps now;
    /// [Long#MAX_VALUE] where nobody tells. What cannot be read at the moment is what it was before.
    long availableBytes();

    /// Page faults of this process so far that waited for the disk; 0 where nobody tells.
    long majorFaults();
}
