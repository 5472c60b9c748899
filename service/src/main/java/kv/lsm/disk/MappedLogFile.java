package kv.lsm.disk;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// A log mapped into memory: a store to it is in the page cache at once and outlives the process, without a
/// system call.
final class MappedLogFile implements LogFile {
    private final Path file;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment mapping;

    MappedLogFile(Path file, long bytes) throws IOException {
        this.file = file;
        try (UninterruptedChannel channel =
                new UninterruptedChannel(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            mapping = channel.run(c -> c.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena));
        } catch (IOException e) {
            arena.close();
            throw e;
        }
    }

    @Override
    public long address() {
        return mapping.address();
    }

    @Override
    public long bytes() {
        return mapping.byteSize();
    }

    /// By msync and not by the channel: it cannot be interrupted, and it looks at the pages of the range only.
    @Override
    public void sync(long from, long to) throws IOException {
        try {
            mapping.asSlice(from, to - from).force();
        } catch (UncheckedIOException e) {
            throw UninterruptedChannel.naming(file, e.getCause());
        }
    }

    @Override
    public boolean isMapped() {
        return true;
    }

    @Override
    public void close() {
        arena.close();
    }
}
