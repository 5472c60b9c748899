package kv.lsm.table;

import kv.lsm.memory.EntryIterator;

/// The entries of one table in key order. Where it has let go of its block, it loads that again on its next call.
public final class SSTableIterator implements EntryIterator {
    private final SSTable table;
    private final BlockBuffer buffer;
    private final ReadAhead aheadOrNull;
    private int nextBlock;
    /// 0 where it was let go of.
    private long payload;
    private int count;
    private int index;
    /// Of the current entry; each is asked for once and held against the block's end, see [kv.lsm.memory.Mapped].
    private long entryAt;
    private int keyLength;
    private int valueLength;

    /// @param aheadOrNull what blocks are read through; null to read them one by one, in place where they are
    /// mapped
    SSTableIterator(SSTable table, BlockBuffer buffer, ReadAhead aheadOrNull, byte[] startOrNull) {
        this.table = table;
        this.buffer = buffer;
        this.aheadOrNull = aheadOrNull;
        if (startOrNull != null) {
            try {
                nextBlock = Math.max(table.blockOf(startOrNull), 0);
                loadNextBlock();
                index = DataBlock.firstAtLeast(payload, buffer.end(), count, startOrNull);
            } catch (RuntimeException | InternalError e) {
                close();
                throw e;
            }
        }
    }

    private void loadNextBlock() {
        nextBlock++;
        loadBlock();
        count = DataBlock.count(payload, buffer.end());
        index = 0;
    }

    private void loadBlock() {
        int block = nextBlock - 1;
        payload = aheadOrNull == null ? table.load(block, buffer) : table.load(block, aheadOrNull, buffer);
    }

    @Override
    public boolean next() {
        if (index == count) {
            if (nextBlock == table.blocks()) {
                return false;
            }
            loadNextBlock();
        } else if (payload == 0) {
            loadBlock();
        }
        long end = buffer.end();
        long entry = DataBlock.entry(payload, end, count, index);
        keyLength = DataBlock.keyLength(entry, end);
        valueLength = DataBlock.valueLength(entry, keyLength, end);
        entryAt = entry - payload;
        index++;
        return true;
    }

    private long entry() {
        if (payload == 0) {
            loadBlock();
        }
        return payload + entryAt;
    }

    @Override
    public long keyAddress() {
        return DataBlock.keyAddress(entry());
    }

    @Override
    public int keyLength() {
        return keyLength;
    }

    @Override
    public long valueAddress() {
        return DataBlock.valueAddress(entry(), keyLength);
    }

    @Override
    public int valueLength() {
        return valueLength;
    }

    @Override
    public long bytesHeld() {
        return buffer.capacity() + (aheadOrNull == null ? 0 : aheadOrNull.capacity());
    }

    @Override
    public void letGo() {
        if (bytesHeld() > 0) {
            buffer.letGo();
            if (aheadOrNull != null) {
                aheadOrNull.letGo();
            }
            payload = 0;
        }
    }

    @Override
    public void close() {
        buffer.close();
        if (aheadOrNull != null) {
            aheadOrNull.close();
        }
    }
}
