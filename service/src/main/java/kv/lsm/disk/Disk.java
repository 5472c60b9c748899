package kv.lsm.disk;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import kv.lsm.TimeSlices;

/// Everything the store does to files, so that tests can put a faulty disk underneath.
///
/// 1. What was written is durable after the file's `sync`; a file's name is durable after [#syncDirectory].
/// 2. An error of any call leaves the object usable only for closing.
/// 3. Calls are not ended by `Thread.interrupt`; the interrupt is kept for the caller.
public interface Disk {

    /// Makes the directory, and those above it, where absent; durable when it returns.
    void createDirectory(Path directory) throws IOException;

    /// Names of what is in `directory`, other directories too, in no order.
    List<String> list(Path directory) throws IOException;

    /// What a name can stand for; a link to a file is one.
    enum Kind {
        FILE("a file"),
        DIRECTORY("a directory"),
        BROKEN_LINK("a symbolic link that leads to no file"),
        SPECIAL("a pipe, a socket or a device");

        private final String text;

        Kind(String text) {
            this.text = text;
        }

        @Override
        public String toString() {
            return text;
        }
    }

    /// What `path` stands for; where that cannot be told a file, and who opens it is told why it cannot be.
    Kind kindOf(Path path);

    /// A new file of `bytes` zeros for a write-ahead log; `bytes` is a multiple of 4096.
    ///
    /// @param direct true when every write will be followed by a sync: the log is then kept in memory of its
    /// own and written
    ///     past the page cache, which takes half the time of writing and syncing a mapped page
    /// @param slices of the thread that calls
    LogFile createLog(Path file, long bytes, boolean direct, TimeSlices slices) throws IOException;

    /// An existing file, to be read.
    ReadFile open(Path file) throws IOException;

    /// As [#open], for reads that leave the page cache as it is, where the file system can do that; elsewhere as
    /// [#open]. It cannot be mapped.
    default ReadFile openDirect(Path file) throws IOException {
        return open(file);
    }

    /// The bytes of a durable file need not stay in the page cache. A hint.
    default void dropCached(Path file) {}

    /// A new empty file, to be written from front to back; replaces one of that name.
    WriteFile create(Path file) throws IOException;

    /// Atomically gives a file another name in the same directory, replacing what has it.
    void rename(Path from, Path to) throws IOException;

    void delete(Path file) throws IOException;

    /// Makes the first `bytes` of an existing file durable by writing them again: another process may have
    /// tried to sync them and failed, and the system, which still shows them, does not write them a second time
    /// by itself.
    void rewrite(Path file, long bytes) throws IOException;

    /// How many bytes new files can take, as far as the disk of `directory` tells; [Long#MAX_VALUE] where it does
    /// not.
    default long usableBytes(Path directory) {
        return Long.MAX_VALUE;
    }

    /// Makes creations, renames and deletions in `directory` durable.
    ///
    /// @throws SyncNotBegunException when it was not tried; after any other error it may have lost some
    void syncDirectory(Path directory) throws IOException;

    /// Takes the lock that `file` stands for until it is closed; null when somebody else has it.
    Closeable lock(Path file) throws IOException;
}
