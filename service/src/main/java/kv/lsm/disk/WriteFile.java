package kv.lsm.disk;

import java.io.IOException;
import java.nio.ByteBuffer;

/// A file written from front to back by one thread at a time.
public interface WriteFile extends AutoCloseable {

    /// Appends all remaining bytes of `buffer`.
    void write(ByteBuffer buffer) throws IOException;

    /// Lets the system begin to bring to the disk what was written, as soon as there is enough of it; promises
    /// nothing. [#sync] finds less left then: the kernel prepares all that is left without being interrupted for
    /// a thread that wakes up.
    default void beginWriting() {}

    /// Makes all that was written durable.
    void sync() throws IOException;

    @Override
    void close() throws IOException;
}
