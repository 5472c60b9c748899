package kv.lsm.table;

import java.io.IOException;
import kv.lsm.disk.ReadFile;
import kv.lsm.memory.Allocator;

/// Brings pages of a mapped file into memory by positional reads, so that they can be read in place afterwards.
///
/// Not by faults: a thread of Java that waits in one holds up every pause of the collector, which waits for it;
/// and what is read ahead around a fault, some MB, would drive out what is needed.
final class MissingPages {
    /// How much is asked about, and read, at once.
    private static final int PIECE_BYTES = 256 << 10;

    private MissingPages() {}

    /// True when some of `[position, position + bytes)` was missing. Afterwards it is in memory, or was a moment
    /// ago.
    ///
    /// @param buffer what is read goes there, too, and nobody looks at it
    static boolean bringIn(ReadFile file, long position, long bytes, BlockBuffer buffer) throws IOException {
        boolean any = false;
        long end = Math.min((position + bytes + Allocator.PAGE_BYTES - 1) & -Allocator.PAGE_BYTES, file.bytes());
        for (long at = position & -Allocator.PAGE_BYTES; at < end; at += PIECE_BYTES) {
            int count = (int) Math.min(PIECE_BYTES, end - at);
            if (!file.isCached(at, count)) {
                TimedReads.read(file, at, buffer.storedRoom(count), count);
                any = true;
            }
        }
        return any;
    }
}
