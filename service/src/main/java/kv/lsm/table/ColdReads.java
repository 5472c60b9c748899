package kv.lsm.table;

import java.util.concurrent.atomic.LongAdder;
import kv.lsm.disk.ReadFile;

/// Point reads of one table while its pages may not be in memory. Thread-safe.
///
/// ```
/// hash index lines ── in memory? ──► entry, or its block when nobody has checked that ── in memory? ──► read in place
///                        │ no                                                            │ no
///                        └─────────────────────┬─────────────────────────────────────────┘
///                          may not wait: NOT_CACHED      may wait: a positional read
/// ```
///
/// Never by a fault in the mapping ([MissingPages] says why). The page of an entry stays unmapped: nearly all
/// that are read for one GET are dropped before the next, and the system drops a page that is not mapped without
/// telling every processor. What leads to them, lines of filter and hash index, is read in place once it is in
/// memory: that it was used keeps it there. The block index is always in memory.
final class ColdReads {
    /// What is read of an entry at first; of a longer one the rest follows.
    private static final int ENTRY_BYTES = 192;

    private static final HashIndex.Candidates ANY = (key, position) -> position;

    private final SSTable table;
    private final ReadFile file;
    private final BlockIndex index;
    private final HashIndex hashIndexOrNull;
    private final CheckedBlocks checkedOrNull;
    private final long dataBytes;
    private final long mapped;

    /// @param checkedOrNull null when the table is not mapped
    /// @param mapped address of byte 0 of the file when it is mapped, else 0
    ColdReads(SSTable table, ReadFile file, SSTableMeta meta, CheckedBlocks checkedOrNull, long mapped) {
        this.table = table;
        this.file = file;
        this.checkedOrNull = checkedOrNull;
        this.mapped = mapped;
        index = meta.index();
        hashIndexOrNull = meta.hashIndexOrNull();
        dataBytes = meta.dataBytes();
    }

    /// As [SSTable#getCold].
    byte[] get(byte[] key, long hash, BlockBuffers buffers, boolean mayWait, LongAdder missed) {
        if (hashIndexOrNull == null) {
            int block = index.find(key);
            return block < 0 ? null : getFromBlock(block, key, hash, buffers, mayWait, missed);
        }
        if (!areLinesThere(hash, buffers, mayWait, missed)) {
            return SSTable.NOT_CACHED;
        }
        long position = hashIndexOrNull.find(key, hash, ANY);
        if (position == 0) {
            return null;
        }
        if (position + DataBlock.ENTRY_HEADER_BYTES + key.length > dataBytes) {
            return mayWait ? getOfOtherCandidate(key, hash, buffers) : SSTable.NOT_CACHED;
        }
        if (!checkedOrNull.contains(position)) {
            return getFromBlock(index.blockAt(position), key, hash, buffers, mayWait, missed);
        }
        return getEntry(position, key, hash, buffers, mayWait, missed);
    }

    /// [#isThere] of all lines of the hash index that a search may look at: the next one may lie on another page.
    private boolean areLinesThere(long hash, BlockBuffers buffers, boolean mayWait, LongAdder missed) {
        long line = hashIndexOrNull.lineAddress(hash);
        while (line != 0) {
            if (!isThere(line - mapped, HashIndex.LINE_BYTES, buffers, mayWait, missed)) {
                return false;
            }
            line = hashIndexOrNull.lineAddressAfter(line, hash);
        }
        return true;
    }

    /// True when these bytes of a mapped table can be read in place without waiting for the disk; a thread that
    /// may wait does so here.
    boolean isThere(long position, int bytes, BlockBuffers buffers, boolean mayWait, LongAdder missed) {
        if (file.isCached(position, bytes)) {
            return true;
        }
        if (!mayWait) {
            return false;
        }
        BlockBuffer buffer = buffers.take();
        try {
            if (table.bringIn(position, bytes, buffer)) {
                missed.increment();
            }
            return true;
        } finally {
            buffers.giveBack(buffer);
        }
    }

    private boolean isCached(long position, long bytes) {
        return mapped != 0 && file.isCached(position, bytes);
    }

    private byte[] getFromBlock(
            int block, byte[] key, long hash, BlockBuffers buffers, boolean mayWait, LongAdder missed) {
        if (isCached(index.start(block), index.bytes(block))) {
            return table.get(key, hash, buffers);
        }
        if (!mayWait) {
            return SSTable.NOT_CACHED;
        }
        missed.increment();
        BlockBuffer buffer = buffers.take();
        byte[] value;
        try {
            long entry = DataBlock.find(table.loadCopy(block, buffer), buffer.end(), key);
            value = SSTable.value(entry, key.length, buffer.end(), null);
        } finally {
            buffers.giveBack(buffer);
        }
        if (checkedOrNull != null) {
            checkedOrNull.add(index.start(block), index.bytes(block));
        }
        return value == null ? getOfOtherCandidate(key, hash, buffers) : value;
    }

    /// @param position of an entry that lies in a block that was checked
    private byte[] getEntry(
            long position, byte[] key, long hash, BlockBuffers buffers, boolean mayWait, LongAdder missed) {
        int first = (int) Math.min(ENTRY_BYTES, dataBytes - position);
        if (isCached(position, first)) {
            int bytes = table.entryBytes(mapped + position, position);
            if (bytes <= first || isCached(position, bytes)) {
                return table.get(key, hash, buffers);
            }
        }
        if (!mayWait) {
            return SSTable.NOT_CACHED;
        }
        missed.increment();
        BlockBuffer buffer = buffers.take();
        try {
            long entry = table.read(position, first, buffer);
            if (DataBlock.keyLength(entry) == key.length) {
                int bytes = table.entryBytes(entry, position);
                if (bytes > first) {
                    entry = table.read(position, bytes, buffer);
                }
                if (DataBlock.isOf(entry, key)) {
                    return SSTable.value(entry, key.length, entry + bytes, null);
                }
            }
        } finally {
            buffers.giveBack(buffer);
        }
        return getOfOtherCandidate(key, hash, buffers);
    }

    /// The hash index led to the entry of another key, as it does once in a thousand times: the whole search,
    /// and its page faults.
    private byte[] getOfOtherCandidate(byte[] key, long hash, BlockBuffers buffers) {
        return hashIndexOrNull == null ? null : table.get(key, hash, buffers);
    }
}
