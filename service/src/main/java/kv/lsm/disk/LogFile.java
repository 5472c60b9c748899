package kv.lsm.disk;

import java.io.IOException;

/// A write-ahead log's bytes in memory. What is stored there reaches the operating system at once (mapped) or
/// with [#sync] (direct), and the disk with [#sync].
public interface LogFile extends AutoCloseable {

    long address();

    long bytes();

    /// True when the memory is the file's pages; false when it is the process's own.
    boolean isMapped();

    /// Makes the bytes `[from, to)` durable.
    void sync(long from, long to) throws IOException;

    /// Lets go of memory and file; does not sync.
    @Override
    void close() throws IOException;
}
