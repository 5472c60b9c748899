package kv.lsm;

/// A durable, ordered map from byte strings to byte strings, kept in one directory.
///
/// Keys are compared as unsigned bytes; a key has 1 to [StoreOptions#KEY_BYTES_MAX] bytes. A value may be
/// empty.
///
/// 1. When [#put] or [#delete] returns, the change is as durable as [StoreOptions#wal()] promises and every
///    later read of every thread sees it.
/// 2. A read sees one point in time: it never sees a change without the changes that were acknowledged before
///    it.
/// 3. All methods may be called by any number of threads at once, virtual threads included. Arrays are copied:
///    the caller may change its own afterwards.
///
/// Operating errors are [StoreException]s; each method names the ones that a caller can act on.
public interface Store extends AutoCloseable {

    /// The value of `key`, or null when it is absent or deleted.
    ///
    /// @throws CorruptionException when a checksum of the data needed does not match
    byte[] get(byte[] key);

    /// What [#tryGet] gives instead of waiting. Compared by identity.
    byte[] WOULD_WAIT = new byte[0];

    /// As [#get], but [#WOULD_WAIT] instead of waiting for the disk, as far as that can be foreseen. For threads
    /// that others wait for: who gets that calls [#get] on a thread that may wait.
    ///
    /// @param roomOrNull where the value may be put, and is returned, if it has just its length
    default byte[] tryGet(byte[] key, byte[] roomOrNull) {
        return get(key);
    }

    default byte[] tryGet(byte[] key) {
        return tryGet(key, null);
    }

    /// True when reads may well have to wait for the disk, so that a thread that others wait for had better leave
    /// ranges to another.
    default boolean readsWaitForDisk() {
        return false;
    }

    /// Fetches from memory what [#get] of the first `count` keys will look at, for all of them at once, so that
    /// calls that follow soon do not wait for it one after the other. A hint: nothing else changes.
    default void prefetchGets(byte[][] keys, int count) {}

    /// As [#prefetchGets], for [#put].
    default void prefetchWrites(byte[][] keys, int count) {}

    /// Sets the value of `key`.
    ///
    /// @throws WriteStalledException when the store could not take the write within [StoreOptions#stallLimit()], or
    ///         finds no room for one that is larger than a memtable; the write was not applied
    /// @throws StoreFailedException  when the store takes no more writes after an I/O error
    void put(byte[] key, byte[] value);

    /// Removes `key`; removing an absent key is not an error. Throws what [#put] throws.
    void delete(byte[] key);

    /// True when a write waits for the disk before it returns, so that a caller who has several had better
    /// [#begin] them all.
    default boolean writesWaitForDisk() {
        return false;
    }

    /// Begins to set the value of `key`, or to remove it when that is null: the write has its place in the
    /// order of all writes, and is neither durable nor, as a rule, visible before [PendingWrite#await] returns.
    /// Several that were begun wait for the disk together.
    ///
    /// Throws what [#put] throws, and then nothing was begun. A write that is begun and never awaited may or
    /// may not happen.
    default PendingWrite begin(byte[] key, byte[] valueOrNull) {
        if (valueOrNull == null) {
            delete(key);
        } else {
            put(key, valueOrNull);
        }
        return () -> {};
    }

    /// As [#begin], but null instead of waiting until flush or compaction have caught up; nothing was begun
    /// then. For threads that others wait for: who gets null calls [#begin] on a thread that may wait.
    default PendingWrite tryBegin(byte[] key, byte[] valueOrNull) {
        return begin(key, valueOrNull);
    }

    /// Begins several writes that become one, as [#begin] does one: after a crash all of them are there or none
    /// is. A range read sees all or none, too; a [#get] may see one of them shortly before another.
    ///
    /// @throws UnsupportedOperationException when the store has no such writes
    default PendingWrite begin(WriteBatch batch) {
        throw new UnsupportedOperationException(
                "this store knows no batches: " + getClass().getName());
    }

    /// The entries with `start <= key < end` in key order as they are now, whatever is written later.
    ///
    /// The cursor holds files open until it is closed, so close it soon.
    ///
    /// @param endOrNull the first key not wanted, or null for "to the last key"
    RangeCursor range(byte[] start, byte[] endOrNull);

    /// What an operator may ask of the store.
    ///
    /// @throws UnsupportedOperationException when the store has nothing of the kind
    default Administration administration() {
        throw new UnsupportedOperationException(
                "this store is not administered: " + getClass().getName());
    }

    /// How many tables are open now, each with a file descriptor. Waits for nothing.
    default int openTables() {
        return 0;
    }

    /// A snapshot of the counters.
    StoreMetrics metrics();

    /// False after an I/O error made the store refuse writes, while the next memtable waits for a log, a flush or a
    /// compaction that failed and is tried again, as on a full disk, and after [#close].
    boolean isWritable();

    /// Makes all acknowledged writes durable and releases the directory. Calls under way end first; open
    /// cursors end with [StoreClosedException]. Closing twice is harmless.
    ///
    /// @throws StoreFailedException when an I/O error ended writing and no call has thrown it yet
    @Override
    void close();
}
