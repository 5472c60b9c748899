package kv.http;

import kv.lsm.RangeCursor;

/// The first entries of a range.
final class LimitedCursor implements RangeCursor {
    private final RangeCursor cursor;
    private int left;

    /// @param limit most entries
    LimitedCursor(RangeCursor cursor, int limit) {
        this.cursor = cursor;
        left = limit;
    }

    @Override
    public Step step(int recordsMax) {
        if (left == 0) {
            return Step.END;
        }
        Step step = cursor.step(recordsMax);
        left -= step == Step.ENTRY ? 1 : 0;
        return step;
    }

    @Override
    public long tombstonesPassed() {
        return cursor.tombstonesPassed();
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
    public void close() {
        cursor.close();
    }
}
