package kv.http;

import kv.lsm.RangeCursor;

/// A cursor that does as another one; a subclass changes what it has to.
abstract class ForwardingCursor implements RangeCursor {
    private final RangeCursor cursor;

    ForwardingCursor(RangeCursor cursor) {
        this.cursor = cursor;
    }

    @Override
    public Step step(int recordsMax) {
        return cursor.step(recordsMax);
    }

    @Override
    public long recordsPassed() {
        return cursor.recordsPassed();
    }

    @Override
    public int valueLength() {
        return cursor.valueLength();
    }

    @Override
    public void copyValue(int from, byte[] to, int at, int count) {
        cursor.copyValue(from, to, at, count);
    }

    @Override
    public byte[] key() {
        return cursor.key();
    }

    @Override
    public void pause() {
        cursor.pause();
    }

    @Override
    public void close() {
        cursor.close();
    }
}
