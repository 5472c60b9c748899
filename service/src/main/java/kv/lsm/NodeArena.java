package kv.lsm;

import java.util.ArrayList;
import java.util.List;
import kv.lsm.memory.Allocator;

/// Zeroed native memory for the nodes of one tree, taken in chunks and freed all at once. One thread at a time
/// allocates.
final class NodeArena {
    private static final int ALIGNMENT_BYTES = 8;

    private record Chunk(long address, long bytes) {}

    private final Allocator allocator;
    private final int chunkBytes;
    private final List<Chunk> chunks = new ArrayList<>();
    private long next;
    private long end;
    private volatile long allocatedBytes;

    NodeArena(Allocator allocator, int chunkBytes) {
        this.allocator = allocator;
        this.chunkBytes = chunkBytes;
    }

    /// @param bytes at most one chunk
    long allocate(int bytes) {
        int aligned = (bytes + ALIGNMENT_BYTES - 1) & -ALIGNMENT_BYTES;
        if (next + aligned > end) {
            next = allocator.allocate(chunkBytes);
            end = next + chunkBytes;
            chunks.add(new Chunk(next, chunkBytes));
            allocatedBytes += chunkBytes;
        }
        long address = next;
        next += aligned;
        return address;
    }

    long allocatedBytes() {
        return allocatedBytes;
    }

    void free() {
        chunks.forEach(chunk -> allocator.free(chunk.address, chunk.bytes));
        chunks.clear();
    }
}
