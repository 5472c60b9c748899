package kv.lsm;

/// The entries of one range read, one at a time. For use by one thread at a time.
///
/// ```java
/// try (RangeCursor cursor = store.range(start, end)) {
///     while (cursor.next()) send(cursor.key(), cursor.value());
/// }
/// ```
public interface RangeCursor extends AutoCloseable {

    /// What [#step] found.
    enum Step { ENTRY, END, NOT_YET }

    /// Moves to the next entry; false when there is none, and from then on.
    boolean next();

    /// As [#next], but gives up when it has passed over `recordsMax` deleted entries and found none that is there: for threads that others
    /// wait for. The next call goes on from there.
    default Step step(int recordsMax) {
        return next() ? Step.ENTRY : Step.END;
    }

    /// Deleted entries that were passed over so far.
    default long tombstonesPassed() {
        return 0;
    }

    /// Length of the current entry's value. Only after [#next] returned true.
    default int valueLength() {
        return value().length;
    }

    /// Copies `count` bytes of the current entry's value, from its offset `from` on, to `[at, at + count)` of `to`. Only after [#next]
    /// returned true.
    default void copyValue(int from, byte[] to, int at, int count) {
        System.arraycopy(value(), from, to, at, count);
    }

    /// A copy of the current entry's key. Only after [#next] returned true.
    byte[] key();

    /// A copy of the current entry's value. Only after [#next] returned true.
    byte[] value();

    /// Lets go of the files and memory this cursor held. Closing twice is harmless.
    @Override
    void close();
}
