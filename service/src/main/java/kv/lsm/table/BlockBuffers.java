package kv.lsm.table;

import java.util.concurrent.ArrayBlockingQueue;
import kv.lsm.memory.Allocator;

/// Spare buffers for point reads. Bounded: what does not fit is freed. Thread-safe.
public final class BlockBuffers implements AutoCloseable {
    private static final int SPARE_MAX = 64;
    /// A buffer that grew beyond this for a large value is not kept.
    private static final int KEPT_BYTES_MAX = 256 << 10;

    private final Allocator allocator;
    private final ArrayBlockingQueue<BlockBuffer> spare = new ArrayBlockingQueue<>(SPARE_MAX);

    public BlockBuffers(Allocator allocator) {
        this.allocator = allocator;
    }

    BlockBuffer take() {
        BlockBuffer buffer = spare.poll();
        return buffer == null ? new BlockBuffer(allocator) : buffer;
    }

    void giveBack(BlockBuffer buffer) {
        if (buffer.capacity() > KEPT_BYTES_MAX || !spare.offer(buffer)) {
            buffer.close();
        }
    }

    @Override
    public void close() {
        for (BlockBuffer buffer; (buffer = spare.poll()) != null; ) {
            buffer.close();
        }
    }
}
