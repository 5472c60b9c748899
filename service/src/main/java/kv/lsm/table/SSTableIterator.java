package kv.lsm.table;

import kv.lsm.memory.EntryIterator;

/// The entries of one table in key order.
public final class SSTableIterator implements EntryIterator {
    private final SSTable table;
    private final BlockBuffer buffer;
    private int nextBlock;
    private long payload;
    private int count;
    private int index;
    private long entry;

    SSTableIterator(SSTable table, BlockBuffer buffer, byte[] startOrNull) {
        this.table = table;
        this.buffer = buffer;
        if (startOrNull != null) {
            try {
                nextBlock = Math.max(table.blockOf(startOrNull), 0);
                loadNextBlock();
                index = DataBlock.firstAtLeast(payload, startOrNull);
            } catch (RuntimeException e) {
                buffer.close();
                throw e;
            }
        }
    }

    private void loadNextBlock() {
        int block = nextBlock++;
        payload = table.load(block, buffer);
        count = DataBlock.count(payload);
        index = 0;
    }

    @Override
    public boolean next() {
        if (index == count) {
            if (nextBlock == table.blocks()) {
                return false;
            }
            loadNextBlock();
        }
        entry = DataBlock.entry(payload, count, index);
        index++;
        return true;
    }

    @Override
    public long keyAddress() {
        return DataBlock.keyAddress(entry);
    }

    @Override
    public int keyLength() {
        return DataBlock.keyLength(entry);
    }

    @Override
    public long valueAddress() {
        return DataBlock.valueAddress(entry);
    }

    @Override
    public int valueLength() {
        return DataBlock.valueLength(entry);
    }

    @Override
    public void close() {
        buffer.close();
    }
}
