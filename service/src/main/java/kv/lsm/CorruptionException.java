package kv.lsm;

import java.nio.file.Path;

/// A file does not hold what the store wrote there.
public final class CorruptionException extends StoreException {
    private final Path file;
    private final long byteOffset;

    /// @param byteOffset where in the file the damaged part starts
    public CorruptionException(Path file, long byteOffset, String problem) {
        super("corrupt file: " + problem + ": file=" + file + ", offset=" + byteOffset);
        this.file = file;
        this.byteOffset = byteOffset;
    }

    public Path file() {
        return file;
    }

    public long byteOffset() {
        return byteOffset;
    }
}
