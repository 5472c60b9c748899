package kv.lsm;

/// The entries of one range read, one at a time. For use by one thread at a time.
///
/// ```java
/// try (RangeCursor cursor = store.range(start, end)) {
///     while (cursor.next()) send(cursor.key(), cursor.value());
/// }
/// ```
public interface RangeCursor extends AutoCloseable {

    /// Moves to the next entry; false when there is none, and from then on.
    boolean next();

    /// A copy of the current entry's key. Only after [#next] returned true.
    byte[] key();

    /// A copy of the current entry's value. Only after [#next] returned true.
    byte[] value();

    /// Lets go of the files and memory this cursor held. Closing twice is harmless.
    @Override
    void close();
}
