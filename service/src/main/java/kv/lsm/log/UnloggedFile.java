package kv.lsm.log;

import kv.lsm.disk.LogFile;
import kv.lsm.memory.Allocator;

/// The memory of a memtable without a write-ahead log.
public final class UnloggedFile implements LogFile {
    private final Allocator allocator;
    private final long bytes;
    private final long address;

    public UnloggedFile(Allocator allocator, long bytes) {
        this.allocator = allocator;
        this.bytes = bytes;
        address = allocator.allocate(bytes);
    }

    @Override
    public long address() {
        return address;
    }

    @Override
    public long bytes() {
        return bytes;
    }

    /// There is nothing to make durable.
    @Override
    public void sync(long from, long to) {}

    @Override
    public boolean isMapped() {
        return false;
    }

    @Override
    public void close() {
        allocator.free(address, bytes);
    }
}
