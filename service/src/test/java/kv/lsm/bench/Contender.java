package kv.lsm.bench;

import java.nio.file.Path;

/// A store in the benchmark. Both contenders get the same arrays and give new ones, as a Java service would use
/// them.
interface Contender extends AutoCloseable {
    /// How durable an acknowledged write is.
    enum Durability {
        /// In the write-ahead log, handed to the operating system.
        OS,
        /// On the disk.
        SYNC
    }

    /// Opens a store of this kind.
    interface Opener {
        Contender open(Path directory, Durability durability) throws Exception;
    }

    void put(byte[] key, byte[] value) throws Exception;

    byte[] get(byte[] key) throws Exception;

    /// Reads all entries in order into arrays; returns how many.
    long scan() throws Exception;

    /// Waits until no flush or compaction is under way or due.
    void settle() throws Exception;
}
