package kv.lsm;

import java.util.concurrent.atomic.AtomicLong;

/// Native memory that all paused ranges of a store keep together: their copies of blocks, one for each sorted run.
/// A block holds a whole value, and a client may open many ranges and read none of them. A range that finds no
/// room when it is paused keeps nothing and reads its blocks again.
///
/// What ranges take while they are read comes on top: the blocks of as many ranges as threads read at one time.
/// Thread-safe.
final class RangeMemory {
    static final long BYTES_MAX = 32L << 20;

    private final AtomicLong left = new AtomicLong(BYTES_MAX);

    /// False, and nothing is taken, when that much is not left. Fewer than no bytes give back.
    boolean tryTake(long bytes) {
        if (left.addAndGet(-bytes) >= 0 || bytes <= 0) {
            return true;
        }
        left.addAndGet(bytes);
        return false;
    }

    void giveBack(long bytes) {
        left.addAndGet(bytes);
    }
}
