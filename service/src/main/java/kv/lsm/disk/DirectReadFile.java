package kv.lsm.disk;

import com.sun.nio.file.ExtendedOpenOption;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.atomic.AtomicBoolean;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;

/// A file that is read past the page cache: what is read once, as compaction does, drives nothing out.
///
/// A file system that refuses, when the file is opened or not before it is read, has it read through the page
/// cache instead. Of other errors it is told apart by the same without direct I/O, which then goes well.
final class DirectReadFile implements ReadFile {
    private static final System.Logger LOGGER = System.getLogger(DirectReadFile.class.getName());
    private static final AtomicBoolean REFUSAL_TOLD = new AtomicBoolean();

    private final ReadFile cached;
    private final Path file;
    private final UninterruptedChannel direct;
    private volatile boolean refused;

    /// Opens a file.
    interface Opening {
        UninterruptedChannel open(Path file, OpenOption... options) throws IOException;
    }

    private DirectReadFile(Path file, ReadFile cached, UninterruptedChannel direct) {
        this.file = file;
        this.cached = cached;
        this.direct = direct;
    }

    static ReadFile open(Path file) throws IOException {
        return open(file, UninterruptedChannel::new);
    }

    /// @param opening opens the file once more, for direct I/O
    static ReadFile open(Path file, Opening opening) throws IOException {
        ReadFile cached = new ChannelReadFile(file);
        try {
            return new DirectReadFile(
                    file, cached, opening.open(file, StandardOpenOption.READ, ExtendedOpenOption.DIRECT));
        } catch (IOException | UnsupportedOperationException e) { // a file system without direct I/O, such as tmpfs
            requireOpens(file, opening, cached);
            tellRefusal(file, e);
            return cached;
        }
    }

    /// @throws IOException where the file cannot be opened without direct I/O either, as where too many are open;
    /// `cached` is closed then
    private static void requireOpens(Path file, Opening opening, ReadFile cached) throws IOException {
        try {
            opening.open(file, StandardOpenOption.READ).close();
        } catch (IOException e) {
            Closing.quietly(cached::close, file);
            throw e;
        }
    }

    private static void tellRefusal(Path file, Exception reason) {
        if (!REFUSAL_TOLD.getAndSet(true)) {
            LOGGER.log(
                    System.Logger.Level.INFO,
                    "no direct I/O on this file system: compaction reads through the page cache, which it may drive"
                            + " hot pages out of: file=" + file + ", reason=" + reason.getMessage());
        }
    }

    @Override
    public long bytes() {
        return cached.bytes();
    }

    @Override
    public long map() {
        throw new UnsupportedOperationException("not to be mapped: file=" + file);
    }

    @Override
    public void read(long position, long address, int count) throws IOException {
        if (!refused) {
            try {
                if (direct.run(c -> readDirectly(c, position, address, count))) {
                    return;
                }
            } catch (IOException e) {
                cached.read(position, address, count); // fails where it is the disk that cannot
                refused = true;
                tellRefusal(file, e);
                return;
            }
        }
        cached.read(position, address, count);
    }

    /// False when the file ended early.
    private static boolean readDirectly(FileChannel channel, long position, long address, int count)
            throws IOException {
        int pages = (count + Allocator.PAGE_BYTES - 1) & -Allocator.PAGE_BYTES;
        ByteBuffer buffer = Memory.buffer(address, pages);
        do {
            if (channel.read(buffer, position + buffer.position()) < 0) {
                return false;
            }
        } while (buffer.position() < count && buffer.position() % Allocator.PAGE_BYTES == 0); // else the file's end
        return buffer.position() >= count;
    }

    @Override
    public void close() throws IOException {
        try {
            direct.close();
        } finally {
            cached.close();
        }
    }
}
