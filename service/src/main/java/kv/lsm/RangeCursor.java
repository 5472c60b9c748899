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
    enum Step {
        ENTRY,
        END,
        NOT_YET
    }

    /// Moves to the next entry; false when there is none, and from then on.
    default boolean next() {
        Step step;
        do {
            step = step(Integer.MAX_VALUE);
        } while (step == Step.NOT_YET);
        return step == Step.ENTRY;
    }

    /// As [#next], but gives up when it has passed over `recordsMax` records and found no entry: for threads that
    /// others wait for. The next call goes on from there.
    Step step(int recordsMax);

    /// Records that were passed over so far: of deleted keys, and those written after this range began.
    long recordsPassed();

    /// Length of the current entry's value. Only after [#next] returned true.
    int valueLength();

    /// Copies `count` bytes of the current entry's value, from its offset `from` on, to `[at, at + count)` of
    /// `to`. Only after [#next] returned true.
    void copyValue(int from, byte[] to, int at, int count);

    /// A copy of the current entry's key. Only after [#next] returned true.
    byte[] key();

    /// A copy of the current entry's value. Only after [#next] returned true.
    default byte[] value() {
        byte[] value = new byte[valueLength()];
        copyValue(0, value, 0, value.length);
        return value;
    }

    /// To be called when nobody will ask for a while. Of the blocks that the cursor has in memory of its own it
    /// keeps no more than it may, see [RangeMemory]; what it does not keep is read again when it is asked for.
    default void pause() {}

    /// Lets go of the files and memory this cursor held. Closing twice is harmless.
    @Override
    void close();
}
