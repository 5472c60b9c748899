package kv.lsm;

import java.nio.file.Path;
import java.time.Duration;
import java.util.function.BooleanSupplier;

/// What an operator asks of an open store: none of it changes what the store holds.
///
/// Calls wait for the store's own threads, so they belong on a thread that may wait. Each is given a question,
/// `giveUp`, that it asks again and again; once the answer is true it ends with [StoreClosedException]. All
/// throw [StoreFailedException] when the store has failed, and [AttemptFailedException] when what they wait for
/// has failed and is tried again, as on a full disk.
public interface Administration {

    /// Brings every write that was acknowledged before the call into tables. Where writers are stalled it waits
    /// until what they wait for is done, however long that takes.
    void flush(BooleanSupplier giveUp);

    /// Flushes, then merges all tables into one sorted run without tombstones. Takes as much disk space again
    /// as the tables do until it ends, and meanwhile no other compaction runs. One that fails is given up.
    void compact(BooleanSupplier giveUp);

    /// Flushes, then makes `directory` a store that holds what this one holds, by hard links to its tables: it
    /// takes no space until this store's compactions replace them. Requests go on. The checkpoint is durable
    /// when the call returns.
    ///
    /// @throws CheckpointException when there cannot be one in that directory
    void checkpoint(Path directory, BooleanSupplier giveUp);

    /// Waits until nothing is left to flush, to compact or to get ready; false when that took longer than `limit`.
    boolean awaitIdle(Duration limit, BooleanSupplier giveUp);
}
