package kv.lsm.table;

import java.io.IOException;
import kv.lsm.StoreException;
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

    private final ReadFile file;
    private final boolean ownsFile;
    private final Allocator allocator;
    private final int lastBytes;
    private long nextBytes;
    private long address;
    private long capacity;
    /// What of the file the window shows.
    private long from;
    private long to;

    private ReadAhead(ReadFile file, boolean ownsFile, int firstBytes, int lastBytes, Allocator allocator) {
        this.file = file;
        this.ownsFile = ownsFile;
        this.allocator = allocator;
        this.lastBytes = lastBytes;
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

    /// Shows the whole file once, to nobody.
    void readAll() throws IOException {
        while (to < file.bytes()) {
            moveTo(to, 1);
        }
    }

    private void moveTo(long start, int bytes) throws IOException {
        long first = start & -PAGE_BYTES;
        long wanted = Math.max(wholePages(start + bytes - first), nextBytes);
        makeRoom(wanted);
        to = from; // shows nothing if the read fails
        int count = Math.toIntExact(Math.min(wanted, file.bytes() - first));
        file.read(first, address, count);
        from = first;
        to = first + count;
        nextBytes = Math.min(2 * nextBytes, lastBytes);
    }

    private void makeRoom(long bytes) {
        if (bytes <= capacity) {
            return;
        }
        free();
        address = allocator.allocateAligned(bytes);
        capacity = bytes;
    }

    private static long wholePages(long bytes) {
        return (bytes + PAGE_BYTES - 1) & -PAGE_BYTES;
    }

    private void free() {
        if (capacity > 0) {
            allocator.free(address, capacity);
            capacity = 0;
        }
    }

    @Override
    public void close() {
        free();
        if (ownsFile) {
            try {
                file.close();
            } catch (IOException e) {
                throw new StoreException("cannot close a table that was merged", e);
            }
        }
    }
}
