package kv.lsm.disk;

import java.io.IOException;

/// A file that is only read. Thread-safe, but for [#close], which the caller orders after all use.
public interface ReadFile extends AutoCloseable {

    long bytes();

    /// The address of the whole file mapped into memory, valid until [#close]; 0 for an empty file.
    long map() throws IOException;

    /// Copies `[position, position + bytes)` of the file to `address`; a file that ends before is an error.
    ///
    /// Of a file from [Disk#openDirect], `position` and `address` are multiples of 4096, and at `address` is
    /// room for `bytes` rounded up to one.
    void read(long position, long address, int bytes) throws IOException;

    /// True when `[position, position + bytes)` of the mapped file can be read there without waiting for the
    /// disk, as far as anybody can tell.
    default boolean isCached(long position, long bytes) {
        return true;
    }

    /// Tells how the whole pages of the first `bytes` of the mapped file will be read from now on. Random: a page
    /// that is not in memory is to come alone; otherwise what lies around it comes too, up to some MB. A hint.
    ///
    /// Since Linux 6.3 a page that is only read through a mapping with random reads counts as not used, and goes
    /// first when memory is short: so not for what is needed again and again.
    default void expectRandomReads(long bytes, boolean random) {}

    /// Tells, before the file is deleted, that it will be: [#close] then gives its memory back piece by piece. A
    /// hint, by one thread at a time.
    default void willBeDeleted() {}

    @Override
    void close() throws IOException;
}
