package kv.lsm.disk;

import java.io.IOException;
import java.nio.ByteBuffer;

/// A file written from front to back by one thread at a time.
public interface WriteFile extends AutoCloseable {

    /// Appends all remaining bytes of `buffer`.
    void write(ByteBuffer buffer) throws IOException;

    /// Makes all that was written durable.
    void sync() throws IOException;

    @Override
    void close() throws IOException;
}
