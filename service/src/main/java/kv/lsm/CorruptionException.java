package kv.lsm;

import java.nio.file.Path;
import kv.lsm.memory.Mapped;

/// A file does not hold what the store wrote there. What only looks so, because a page of a mapped file could
/// not be read, is none: making one throws the InternalError of that page then, see [Mapped].
public final class CorruptionException extends StoreException {
    private final Path file;
    private final long byteOffset;
    private final String problem;

    /// @param byteOffset where in the file the damaged part starts
    public CorruptionException(Path file, long byteOffset, String problem) {
        super("corrupt file: " + problem + ": file=" + file + ", offset=" + byteOffset);
        Mapped.throwPending();
        this.file = file;
        this.byteOffset = byteOffset;
        this.problem = problem;
    }

    public Path file() {
        return file;
    }

    /// What is wrong, without the place.
    public String problem() {
        return problem;
    }

    public long byteOffset() {
        return byteOffset;
    }
}
