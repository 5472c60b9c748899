package kv.lsm.table;

import kv.lsm.memory.Allocator;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Memory;
import kv.lsm.memory.NativeBuffer;

/// Puts a data block's payload together; see [DataBlock].
final class DataBlockBuilder implements AutoCloseable {
    private static final int COUNT_MAX = 0xFFFF;

    private final NativeBuffer offsets;
    private final NativeBuffer entries;
    private final int blockBytes;
    private int count;

    /// @param blockBytes size from which on a block is full
    DataBlockBuilder(Allocator allocator, int blockBytes) {
        this.blockBytes = blockBytes;
        offsets = new NativeBuffer(allocator, 512);
        entries = new NativeBuffer(allocator, 2L * blockBytes);
    }

    /// @param valueLength bytes, or [EntryIterator#TOMBSTONE]
    void add(long key, int keyLength, long value, int valueLength) {
        offsets.appendShort((int) entries.size());
        entries.appendShort(keyLength);
        entries.appendInt(valueLength);
        entries.append(key, keyLength);
        if (valueLength != EntryIterator.TOMBSTONE) {
            entries.append(value, valueLength);
        }
        count++;
    }

    boolean isEmpty() {
        return count == 0;
    }

    /// True when the block should end before another entry of `entryBytes` key and value bytes: blocks stay
    /// within their target where entries allow it.
    boolean isFullFor(long entryBytes) {
        long after = size() + DataBlock.OFFSET_BYTES + DataBlock.ENTRY_HEADER_BYTES + entryBytes;
        return count > 0 && (after > blockBytes || count == COUNT_MAX || entries.size() > DataBlock.OFFSET_MAX);
    }

    private long size() {
        return DataBlock.COUNT_BYTES + offsets.size() + entries.size();
    }

    /// Moves the payload to the end of `out` and starts over.
    ///
    /// @param start of the block in the file
    /// @param positionsOrNull where the block's entries start in the file is added here, 4 bytes each
    void finish(NativeBuffer out, long start, NativeBuffer positionsOrNull) {
        if (positionsOrNull != null) {
            addPositions(start, positionsOrNull);
        }
        Memory.putShort(out.extend(DataBlock.COUNT_BYTES), count);
        out.append(offsets);
        out.append(entries);
        offsets.clear();
        entries.clear();
        count = 0;
    }

    private void addPositions(long start, NativeBuffer positions) {
        long entriesStart = start + DataBlock.COUNT_BYTES + offsets.size();
        for (int i = 0; i < count; i++) {
            positions.appendInt((int) (entriesStart + Memory.getUnsignedShort(offsets.address() + 2L * i)));
        }
    }

    @Override
    public void close() {
        offsets.close();
        entries.close();
    }
}
