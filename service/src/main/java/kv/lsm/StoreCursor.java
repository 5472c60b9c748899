package kv.lsm;

import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;

/// [RangeCursor] over a view that it keeps.
final class StoreCursor implements RangeCursor {
    private final Views views;
    private final Counters counters;
    private final ReadView view;
    private final MergingIterator entries;
    private final byte[] endOrNull;
    private boolean atEntry;
    private boolean closed;

    /// @param view retained for this cursor, which releases it
    StoreCursor(Views views, Counters counters, ReadView view, MergingIterator entries, byte[] endOrNull) {
        this.views = views;
        this.counters = counters;
        this.view = view;
        this.entries = entries;
        this.endOrNull = endOrNull;
        counters.openCursors.incrementAndGet();
    }

    @Override
    public boolean next() {
        if (closed || views.current() == null) {
            throw new StoreClosedException();
        }
        atEntry = false;
        while (entries.next()) {
            if (endOrNull != null && Keys.compare(endOrNull, entries.keyAddress(), entries.keyLength()) <= 0) {
                break;
            }
            if (entries.valueLength() != EntryIterator.TOMBSTONE) {
                atEntry = true;
                break;
            }
        }
        return atEntry;
    }

    @Override
    public byte[] key() {
        requireEntry();
        return Memory.copyOf(entries.keyAddress(), entries.keyLength());
    }

    @Override
    public byte[] value() {
        requireEntry();
        return Memory.copyOf(entries.valueAddress(), entries.valueLength());
    }

    private void requireEntry() {
        if (closed || !atEntry) {
            throw new IllegalStateException("the cursor is not at an entry: call next() first");
        }
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            entries.close();
            view.release();
            counters.openCursors.decrementAndGet();
        }
    }
}
