package kv.lsm.table;

import kv.lsm.memory.Allocator;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Memory;
import kv.lsm.memory.NativeBuffer;

/// Puts a data block's payload together; see [DataBlock].
final class DataBlockBuilder implements AutoCloseable {
    private static final int COUNT_MAX = 0xFFFF;

    private final NativeBuffer tags;
    private final NativeBuffer offsets;
    private final NativeBuffer entries;
    private final int blockBytes;
    private int count;

    /// @param blockBytes size from which on a block is full
    DataBlockBuilder(Allocator allocator, int blockBytes) {
        this.blockBytes = blockBytes;
        tags = new NativeBuffer(allocator, 256);
        offsets = new NativeBuffer(allocator, 512);
        entries = new NativeBuffer(allocator, 2L * blockBytes);
    }

    /// @param valueLength bytes, or [EntryIterator#TOMBSTONE]
    void add(long key, int keyLength, long value, int valueLength, long hash) {
        boolean tombstone = valueLength == EntryIterator.TOMBSTONE;
        tags.appendByte((int) hash);
        offsets.appendShort((int) entries.size());
        entries.appendShort(tombstone ? keyLength | DataBlock.TOMBSTONE_BIT : keyLength);
        entries.append(key, keyLength);
        if (!tombstone) {
            entries.append(value, valueLength);
        }
        count++;
    }

    boolean isEmpty() {
        return count == 0;
    }

    /// True when the block should end before another entry of `entryBytes` key and value bytes: blocks stay within their target
    /// where entries allow it.
    boolean isFullFor(long entryBytes) {
        long after = size() + DataBlock.TAG_BYTES + DataBlock.OFFSET_BYTES + DataBlock.ENTRY_HEADER_BYTES + entryBytes;
        return count > 0
                && (after > blockBytes || count == COUNT_MAX || entries.size() > DataBlock.OFFSET_MAX);
    }

    private long size() {
        return DataBlock.COUNT_BYTES + tags.size() + offsets.size() + entries.size();
    }

    /// Moves the payload to the end of `out` and starts over.
    void finish(NativeBuffer out) {
        Memory.putShort(out.extend(DataBlock.COUNT_BYTES), count);
        out.append(tags);
        out.append(offsets);
        out.append(entries);
        tags.clear();
        offsets.clear();
        entries.clear();
        count = 0;
    }

    @Override
    public void close() {
        tags.close();
        offsets.close();
        entries.close();
    }
}
