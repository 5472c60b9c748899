package kv.lsm.memory;

/// Entries in key order, each key once, as pointers into native memory. For one thread at a time.
///
/// What the pointers name stays valid until [#next] or [#close] is called.
public interface EntryIterator extends AutoCloseable {
    /// The value length that marks a tombstone.
    int TOMBSTONE = -1;

    /// Moves to the next entry; false at the end.
    boolean next();

    long keyAddress();

    int keyLength();

    long valueAddress();

    /// Bytes of the value, or [#TOMBSTONE].
    int valueLength();

    @Override
    void close();
}
