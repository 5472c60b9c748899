package kv.http;

import kv.lsm.RangeCursor;

/// A cursor over entries none of which is deleted.
abstract class PlainCursor implements RangeCursor {
    /// Moves to the next entry; false when there is none.
    abstract boolean advance();

    @Override
    public abstract byte[] value();

    @Override
    public Step step(int recordsMax) {
        return advance() ? Step.ENTRY : Step.END;
    }

    @Override
    public long recordsPassed() {
        return 0;
    }

    @Override
    public int valueLength() {
        return value().length;
    }

    @Override
    public void copyValue(int from, byte[] to, int at, int count) {
        System.arraycopy(value(), from, to, at, count);
    }
}
