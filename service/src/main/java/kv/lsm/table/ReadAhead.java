package kv.lsm.table;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import kv.lsm.disk.Closing;
import kv.lsm.disk.ReadFile;
import kv.lsm.memory.Allocator;

/// A window on a file that is read from front to back: one call to the disk for many blocks, into memory of the
/// reader's own. For one thread.
///
/// The mapping is not used for this when tables are larger than memory: it is told to expect random reads then,
/// and each of its pages would be waited for by itself.
final class ReadAhead implements AutoCloseable {
    private static final int PAGE_BYTES = Allocator.PAGE_BYTES;
    /// A short range reads no more than this in vain; a long one has its window doubled with each call.
    private static final int FIRST_BYTES = 16 << 10;
    private static final int LAST_BYTES = 256 << 10;
    /// Past the page cache nobody reads ahead for us.
    private static final int MERGE_BYTES = 1 << 20;
    /// Of all windows of ranges together, what they may take beyond the block that each shows: a client may open
    /// many ranges, each has a window on every run, and memory is short where they are used.
    private static final AtomicLong LEFT_FOR_RANGES = new AtomicLong(16 << 20);

    private final ReadFile file;
    private final boolean ownsFile;
    private final Allocator allocator;
    private final boolean isBounded;
    private final int firstBytes;
    private final int lastBytes;
    private long nextBytes;
    private long address;
    private long capacity;
    /// Of [#LEFT_FOR_RANGES].
    private long taken;
    /// What of the file the window shows.
    private long from;
    private long to;

    private ReadAhead(ReadFile file, boolean ownsFile, int firstBytes, int lastBytes, Allocator allocator) {
        this.file = file;
        this.ownsFile = ownsFile;
        this.allocator = allocator;
        this.firstBytes = firstBytes;
        this.lastBytes = lastBytes;
        isBounded = !ownsFile;
        nextBytes = firstBytes;
    }

    /// For ranges, which others may ask for again.
    static ReadAhead throughPageCache(ReadFile file, Allocator allocator) {
        return new ReadAhead(file, false, FIRST_BYTES, LAST_BYTES, allocator);
    }

    /// @param direct from [kv.lsm.disk.Disk#openDirect]; closed with this
    static ReadAhead pastPageCache(ReadFile direct, Allocator allocator) {
        return new ReadAhead(direct, true, MERGE_BYTES, MERGE_BYTES, allocator);
    }

    /// The address of `[start, start + bytes)` of the file; valid until the next call.
    long at(long start, int bytes) throws IOException {
        if (start < from || start + bytes > to) {
            moveTo(start, bytes);
        }
        return address + (start - from);
    }

    /// Shows the whole file once, to nobody, or what comes before `stop`.
    void readAll(BooleanSupplier stop) throws IOException {
        while (to < file.bytes() && !stop.getAsBoolean()) {
            moveTo(to, 1);
        }
    }

    private void moveTo(long start, int bytes) throws IOException {
        long first = start & -PAGE_BYTES;
        long needed = wholePages(start + bytes - first);
        to = from; // shows nothing if the read fails
        makeRoom(needed);
        long wanted = Math.max(needed, Math.min(nextBytes, capacity));
        int count = Math.toIntExact(Math.min(wanted, file.bytes() - first));
        TimedReads.read(file, first, address, count);
        from = first;
        to = first + count;
        nextBytes = Math.min(2 * nextBytes, lastBytes);
    }

    private void makeRoom(long needed) {
        long wished = Math.max(needed, nextBytes);
        if (wished <= capacity || needed <= capacity && !mayTake(wished)) {
            return;
        }
        free();
        long bytes = mayTake(wished) ? take(wished) : needed;
        address = allocator.allocateAligned(bytes);
        capacity = bytes;
    }

    private boolean mayTake(long bytes) {
        return !isBounded || LEFT_FOR_RANGES.get() >= bytes - taken;
    }

    private long take(long bytes) {
        if (isBounded) {
            LEFT_FOR_RANGES.addAndGet(-bytes);
            taken = bytes;
        }
        return bytes;
    }

    private static long wholePages(long bytes) {
        return (bytes + PAGE_BYTES - 1) & -PAGE_BYTES;
    }

    private void free() {
        if (capacity > 0) {
            allocator.free(address, capacity);
            capacity = 0;
            LEFT_FOR_RANGES.addAndGet(taken);
            taken = 0;
        }
    }

    long capacity() {
        return capacity;
    }

    /// Gives its memory back. When it is used again it begins with a small window.
    void letGo() {
        free();
        to = from;
        nextBytes = firstBytes;
    }

    @Override
    public void close() {
        free();
        if (ownsFile) {
            Closing.quietly(file::close, "a table that was merged");
        }
    }
}
