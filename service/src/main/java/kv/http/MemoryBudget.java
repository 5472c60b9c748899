package kv.http;

import java.util.concurrent.atomic.AtomicLong;

/// Bytes that all unfinished requests together may hold in the heap. Whoever wants more than is left is refused, so that
/// many slow or waiting clients cannot exhaust the memory.
final class MemoryBudget {
    private final long bytesMax;
    private final AtomicLong bytesTaken = new AtomicLong();

    MemoryBudget(long bytesMax) {
        this.bytesMax = bytesMax;
    }

    /// A quarter of the heap; the rest is for memtables' entries, caches and garbage.
    static MemoryBudget ofHeap() {
        return new MemoryBudget(Runtime.getRuntime().maxMemory() / 4);
    }

    boolean tryTake(long bytes) {
        if (bytesTaken.addAndGet(bytes) <= bytesMax) {
            return true;
        }
        bytesTaken.addAndGet(-bytes);
        return false;
    }

    void giveBack(long bytes) {
        bytesTaken.addAndGet(-bytes);
    }

    long bytesTaken() {
        return bytesTaken.get();
    }

    long bytesMax() {
        return bytesMax;
    }

    Share share() {
        return new Share();
    }

    /// What one holder has taken. Guarded by its holder.
    final class Share {
        private long taken;

        /// False when that much is not left; the share then stays as it is. It never shrinks before [#giveBack].
        boolean growTo(long bytes) {
            if (bytes > taken) {
                if (!tryTake(bytes - taken)) {
                    return false;
                }
                taken = bytes;
            }
            return true;
        }

        void giveBack() {
            if (taken > 0) {
                MemoryBudget.this.giveBack(taken);
                taken = 0;
            }
        }
    }
}
