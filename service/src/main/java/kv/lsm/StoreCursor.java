package kv.lsm;

import java.util.Objects;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Mapped;
import kv.lsm.memory.Memory;

/// [RangeCursor] over a view that it keeps.
final class StoreCursor implements RangeCursor {
    private final StoreFiles files;
    private final Views views;
    private final Counters counters;
    private final ReadView view;
    private final MergingIterator entries;
    private final byte[] endOrNull;
    private final RangeMemory memory;
    private boolean atEntry;
    /// Of the current entry: asked for once, since the question goes through three iterators.
    private int valueLength;
    private long recordsPassed;
    /// Of `memory`, since the last pause.
    private long taken;
    private boolean closed;
    /// Of a step: what lies between the places of the iterators then is not known, so nothing comes after it.
    private RuntimeException failureOrNull;

    /// @param view retained for this cursor, which releases it
    StoreCursor(
            StoreFiles files,
            Views views,
            Counters counters,
            ReadView view,
            MergingIterator entries,
            byte[] endOrNull,
            RangeMemory memory) {
        this.files = files;
        this.views = views;
        this.counters = counters;
        this.view = view;
        this.entries = entries;
        this.endOrNull = endOrNull;
        this.memory = memory;
        counters.openCursors.incrementAndGet();
    }

    @Override
    public Step step(int recordsMax) {
        if (closed || views.current() == null) {
            throw new StoreClosedException();
        }
        atEntry = false;
        if (failureOrNull != null) {
            throw failureOrNull;
        }
        try {
            Step step = stepFurther(recordsMax);
            Mapped.throwPending();
            return step;
        } catch (InternalError e) {
            failureOrNull = files.unreadablePage(e);
        } catch (RuntimeException e) {
            failureOrNull = e;
        }
        atEntry = false;
        throw failureOrNull;
    }

    private Step stepFurther(int recordsMax) {
        for (int left = recordsMax; left > 0; left--) {
            if (!entries.next()
                    || endOrNull != null && Keys.compare(endOrNull, entries.keyAddress(), entries.keyLength()) <= 0) {
                return Step.END;
            }
            valueLength = entries.valueLength();
            if (valueLength >= 0) {
                atEntry = true;
                return Step.ENTRY;
            }
            recordsPassed++;
        }
        return Step.NOT_YET;
    }

    @Override
    public long recordsPassed() {
        return recordsPassed;
    }

    @Override
    public int valueLength() {
        requireEntry();
        return valueLength;
    }

    @Override
    public void copyValue(int from, byte[] to, int at, int count) {
        Objects.checkFromIndexSize(from, count, valueLength());
        Objects.checkFromIndexSize(at, count, to.length);
        try {
            Memory.copy(entries.valueAddress() + from, to, at, count);
            Mapped.throwPending();
        } catch (InternalError e) {
            throw files.unreadablePage(e);
        }
    }

    @Override
    public byte[] key() {
        requireEntry();
        try {
            byte[] key = Memory.copyOf(entries.keyAddress(), entries.keyLength());
            Mapped.throwPending();
            return key;
        } catch (InternalError e) {
            throw files.unreadablePage(e);
        }
    }

    @Override
    public byte[] value() {
        requireEntry();
        try {
            byte[] value = Memory.copyOf(entries.valueAddress(), valueLength);
            Mapped.throwPending();
            return value;
        } catch (InternalError e) {
            throw files.unreadablePage(e);
        }
    }

    private void requireEntry() {
        if (closed || !atEntry) {
            throw new IllegalStateException("the cursor is not at an entry: call next() first");
        }
    }

    @Override
    public void pause() {
        if (closed) {
            return;
        }
        long bytes = entries.bytesHeld();
        if (!memory.tryTake(bytes - taken)) {
            entries.letGo();
            bytes = 0;
            memory.giveBack(taken);
        }
        taken = bytes;
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            entries.close();
            memory.giveBack(taken);
            view.release();
            counters.openCursors.decrementAndGet();
        }
    }
}
