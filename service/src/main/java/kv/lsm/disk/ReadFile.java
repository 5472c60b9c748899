package kv.lsm.disk;

import java.io.IOException;

/// A file that is only read. Thread-safe, but for [#close], which the caller orders after all use.
public interface ReadFile extends AutoCloseable {

    long bytes();

    /// The address of the whole file mapped into memory, valid until [#close]; 0 for an empty file.
    long map() throws IOException;

    /// Copies `[position, position + bytes)` of the file to `address`; a file that ends before is an error.
    void read(long position, long address, int bytes) throws IOException;

    @Override
    void close() throws IOException;
}
