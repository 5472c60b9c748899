package kv.http;

import kv.lsm.RangeCursor;

/// The first entries of a range.
final class LimitedCursor extends ForwardingCursor {
    private int left;

    /// @param limit most entries
    LimitedCursor(RangeCursor cursor, int limit) {
        super(cursor);
        left = limit;
    }

    @Override
    public Step step(int recordsMax) {
        if (left == 0) {
            return Step.END;
        }
        Step step = super.step(recordsMax);
        left -= step == Step.ENTRY ? 1 : 0;
        return step;
    }
}
