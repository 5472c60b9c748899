package kv.lsm.memory;

/// Entries in key order, each key once, as pointers into native memory. For one thread at a time.
///
/// What the pointers name stays valid until [#next], [#letGo] or [#close] is called.
public interface EntryIterator extends AutoCloseable {
    /// The value length that marks a tombstone.
    int TOMBSTONE = -1;

    /// The value length that marks a record which this reader does not see, for it was written after the reader
    /// began. It is no entry, and its key may come again, once for each such record: so that who reads can count
    /// them, and need not pass over all of them at one time.
    int INVISIBLE = -2;

    /// Moves to the next entry; false at the end.
    boolean next();

    long keyAddress();

    int keyLength();

    long valueAddress();

    /// Bytes of the value, [#TOMBSTONE], or [#INVISIBLE] where others write meanwhile.
    int valueLength();

    /// Native memory that [#letGo] would give back.
    default long bytesHeld() {
        return 0;
    }

    /// Gives back the memory of copies that can be made again, and keeps its place: they are made again when they
    /// are needed.
    default void letGo() {}

    @Override
    void close();
}
