package kv.lsm;

/// How tables are read.
public enum ReadMode {
    /// Mapped into memory: no system call and no copy; a page that is not cached stops the thread in a page
    /// fault.
    MMAP,
    /// One positional read per block; index and bloom filter are held off-heap.
    PREAD
}
