package kv.lsm.disk;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;

final class ChannelReadFile implements ReadFile {
    private final Path file;
    private final UninterruptedChannel channel;
    private final long bytes;
    /// Of a file that will be deleted: a channel does not tell its own.
    private int descriptor = PageCache.NO_DESCRIPTOR;
    private Arena mapping;
    /// Of the mapped file.
    private long address;

    ChannelReadFile(Path file) throws IOException {
        this.file = file;
        channel = new UninterruptedChannel(file, StandardOpenOption.READ);
        bytes = channel.run(FileChannel::size);
    }

    @Override
    public long bytes() {
        return bytes;
    }

    @Override
    public long map() throws IOException {
        if (bytes == 0) {
            return 0;
        }
        mapping = Arena.ofShared();
        address = channel.run(c -> c.map(FileChannel.MapMode.READ_ONLY, 0, bytes, mapping))
                .address();
        return address;
    }

    @Override
    public boolean isCached(long position, long count) {
        return PageCache.holds(address + position, count);
    }

    @Override
    public void expectRandomReads(long count, boolean random) {
        long wholePages = count & -Allocator.PAGE_BYTES;
        if (address != 0 && wholePages > 0) {
            PageCache.expectRandomReads(address, wholePages, random);
        }
    }

    @Override
    public void read(long position, long address, int count) throws IOException {
        channel.run(c -> {
            ByteBuffer buffer = Memory.buffer(address, count);
            while (buffer.hasRemaining()) {
                if (c.read(buffer, position + buffer.position()) < 0) {
                    throw new EOFException("file ends early: file=" + file + ", offset="
                            + (position + buffer.position()) + ", wanted=" + buffer.remaining());
                }
            }
            return null;
        });
    }

    @Override
    public void willBeDeleted() {
        if (descriptor == PageCache.NO_DESCRIPTOR) {
            descriptor = PageCache.open(file);
        }
    }

    @Override
    public void close() throws IOException {
        if (mapping != null) {
            mapping.close();
        }
        PageCache.dropInPieces(descriptor, bytes);
        PageCache.close(descriptor);
        descriptor = PageCache.NO_DESCRIPTOR;
        channel.close();
    }
}
