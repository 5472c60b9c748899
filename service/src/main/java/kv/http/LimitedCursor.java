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
    public boolean next() {
        return left > 0 && left-- > 0 && cursor.next();
    }

    @Override
    public byte[] key() {
        return cursor.key();
    }

    @Override
    public byte[] value() {
        return cursor.value();
    }

    @Override
    public void close() {
        cursor.close();
    }
}
