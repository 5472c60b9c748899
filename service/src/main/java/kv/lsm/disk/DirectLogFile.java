package kv.lsm.disk;

import com.sun.nio.file.ExtendedOpenOption;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;

/// A log in memory of its own whose pages are written to the disk itself, each write durable when it returns.
///
/// The last page is written again with every sync that ends in it. What was durable in it is written with the
/// same bytes, so a torn write cannot harm it.
final class DirectLogFile implements LogFile {
    private final Allocator allocator;
    private final long bytes;
    private final long address;
    private final UninterruptedChannel channel;

    DirectLogFile(Path file, long bytes, Allocator allocator) throws IOException {
        this.allocator = allocator;
        this.bytes = bytes;
        channel = open(file);
        address = allocator.allocateAligned(bytes);
    }

    private static UninterruptedChannel open(Path file) throws IOException {
        try {
            return new UninterruptedChannel(
                    file, StandardOpenOption.WRITE, StandardOpenOption.DSYNC, ExtendedOpenOption.DIRECT);
        } catch (IOException | UnsupportedOperationException e) { // a file system without direct I/O, such as tmpfs
            return new UninterruptedChannel(file, StandardOpenOption.WRITE, StandardOpenOption.DSYNC);
        }
    }

    @Override
    public long address() {
        return address;
    }

    @Override
    public long bytes() {
        return bytes;
    }

    @Override
    public void sync(long from, long to) throws IOException {
        long start = from & -Allocator.PAGE_BYTES;
        long end = (to + Allocator.PAGE_BYTES - 1) & -Allocator.PAGE_BYTES;
        ByteBuffer pages = Memory.buffer(address + start, end - start);
        channel.run(c -> {
            pages.clear();
            while (pages.hasRemaining()) {
                c.write(pages, start + pages.position());
            }
            return null;
        });
    }

    @Override
    public boolean isMapped() {
        return false;
    }

    @Override
    public void close() throws IOException {
        allocator.free(address, bytes);
        channel.close();
    }
}
