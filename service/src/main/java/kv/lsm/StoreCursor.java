package kv.lsm;

import java.util.Objects;
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
    private long tombstonesPassed;
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
    public Step step(int recordsMax) {
        if (closed || views.current() == null) {
            throw new StoreClosedException();
        }
        atEntry = false;
        for (int left = recordsMax; left > 0; left--) {
            if (!entries.next()
                    || endOrNull != null && Keys.compare(endOrNull, entries.keyAddress(), entries.keyLength()) <= 0) {
                return Step.END;
            }
            if (entries.valueLength() != EntryIterator.TOMBSTONE) {
                atEntry = true;
                return Step.ENTRY;
            }
            tombstonesPassed++;
        }
        return Step.NOT_YET;
    }

    @Override
    public long tombstonesPassed() {
        return tombstonesPassed;
    }

    @Override
    public int valueLength() {
        requireEntry();
        return entries.valueLength();
    }

    @Override
    public void copyValue(int from, byte[] to, int at, int count) {
        requireEntry();
        Objects.checkFromIndexSize(from, count, entries.valueLength());
        Objects.checkFromIndexSize(at, count, to.length);
        Memory.copy(entries.valueAddress() + from, to, at, count);
    }

    @Override
    public byte[] key() {
        requireEntry();
        return Memory.copyOf(entries.keyAddress(), entries.keyLength());
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
