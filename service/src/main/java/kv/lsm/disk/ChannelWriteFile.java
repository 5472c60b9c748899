package kv.lsm.disk;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// Used by the store's own threads, which nobody interrupts, and while a store is opened.
final class ChannelWriteFile implements WriteFile {
    private static final long PIECE_BYTES = 1 << 20;
    /// What came before while nobody asked for it is left to the sync: it would be much for one call.
    private static final int PIECES_AT_ONCE = 3;

    private final Path file;
    private final FileChannel channel;
    private int descriptor;
    private long written;
    /// So much of it is on its way to the disk.
    private long begun;

    ChannelWriteFile(Path file) throws IOException {
        this.file = file;
        channel = FileChannel.open(
                file, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE);
        descriptor = PageCache.open(file);
    }

    @Override
    public void write(ByteBuffer buffer) throws IOException {
        try {
            while (buffer.hasRemaining()) {
                written += channel.write(buffer);
            }
        } catch (IOException e) {
            throw UninterruptedChannel.naming(file, e);
        }
    }

    @Override
    public void beginWriting() {
        if (written - begun >= PIECE_BYTES) {
            long from = Math.max(begun, written - PIECES_AT_ONCE * PIECE_BYTES);
            PageCache.beginWriting(descriptor, from, written - from);
            begun = written;
        }
    }

    @Override
    public void sync() throws IOException {
        try {
            channel.force(false);
        } catch (IOException e) {
            throw UninterruptedChannel.naming(file, e);
        }
    }

    @Override
    public void close() throws IOException {
        PageCache.close(descriptor);
        descriptor = PageCache.NO_DESCRIPTOR;
        channel.close();
    }
}
