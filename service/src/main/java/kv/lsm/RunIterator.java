package kv.lsm;

import java.util.Iterator;
import java.util.List;
import kv.lsm.memory.EntryIterator;
import kv.lsm.table.SSTable;
import kv.lsm.table.SSTableIterator;

/// The entries of tables that follow each other, opening one at a time.
final class RunIterator implements EntryIterator {
    private final Iterator<SSTable> rest;
    private final boolean merges;
    private byte[] startOrNull;
    private SSTableIterator current;

    private RunIterator(List<SSTable> tables, byte[] startOrNull, boolean merges) {
        rest = tables.iterator();
        this.startOrNull = startOrNull;
        this.merges = merges;
    }

    /// @param startOrNull smallest key wanted; lies in or before the first table
    static RunIterator ofRange(List<SSTable> tables, byte[] startOrNull) {
        return new RunIterator(tables, startOrNull, false);
    }

    /// All entries, read once.
    static RunIterator ofMerge(List<SSTable> tables) {
        return new RunIterator(tables, null, true);
    }

    @Override
    public boolean next() {
        while (current == null || !current.next()) {
            close();
            if (!rest.hasNext()) {
                return false;
            }
            SSTable table = rest.next();
            current = merges ? table.mergeIterator() : table.iterator(startOrNull);
            startOrNull = null;
        }
        return true;
    }

    @Override
    public long keyAddress() {
        return current.keyAddress();
    }

    @Override
    public int keyLength() {
        return current.keyLength();
    }

    @Override
    public long valueAddress() {
        return current.valueAddress();
    }

    @Override
    public int valueLength() {
        return current.valueLength();
    }

    @Override
    public long bytesHeld() {
        return current == null ? 0 : current.bytesHeld();
    }

    @Override
    public void letGo() {
        if (current != null) {
            current.letGo();
        }
    }

    @Override
    public void close() {
        if (current != null) {
            current.close();
            current = null;
        }
    }
}
