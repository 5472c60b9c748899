package kv.lsm;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;

/// Lets a writer wait until every reader that may still use what was current has left, at the cost of two
/// uncontended atomic additions per read.
///
/// ```java
/// int token = epochs.enter();           // reader
/// try { use(current); } finally { epochs.exit(token); }
///
/// current = next; epochs.awaitReaders(); free(previous);   // writer
/// ```
///
/// Readers count themselves in one of many cells, chosen by thread, of one of two rows, chosen by the epoch.
/// The writer starts a new epoch, so that new readers use the other row, and waits until each cell of both rows
/// was seen at zero: a reader that is counted after that loads what was published before. Two rows, so that a
/// steady stream of readers cannot keep a cell above zero for ever.
final class Epochs {
    private static final int CELLS = 32; // per row
    private static final int STRIDE = 16; // longs: two cache lines, so that cells are not fetched together
    private static final long PAUSE_NANOS = 50_000;

    private final AtomicLongArray counts = new AtomicLongArray((2 * CELLS + 1) * STRIDE);
    private volatile int row;

    /// Counts the caller in and returns what [#exit] needs.
    int enter() {
        int cell = (int) Thread.currentThread().threadId() & (CELLS - 1);
        int index = (row * CELLS + cell + 1) * STRIDE;
        counts.getAndIncrement(index);
        return index;
    }

    void exit(int token) {
        counts.getAndDecrement(token);
    }

    /// Returns when every reader that entered before the call has left. One thread at a time.
    void awaitReaders() {
        int previous = row;
        awaitRow(1 - previous); // readers that read the row's number before the last change of epoch
        row = 1 - previous;
        awaitRow(previous);
    }

    private void awaitRow(int awaited) {
        for (int cell = 0; cell < CELLS; cell++) {
            while (counts.get((awaited * CELLS + cell + 1) * STRIDE) != 0) {
                LockSupport.parkNanos(PAUSE_NANOS);
            }
        }
    }
}
