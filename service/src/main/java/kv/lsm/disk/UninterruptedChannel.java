package kv.lsm.disk;

import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.file.OpenOption;
import java.nio.file.Path;

/// A file channel that outlives `Thread.interrupt`.
///
/// Java closes a channel for everybody when one thread is interrupted in a call on it. A server interrupts its
/// workers on shutdown, and one of them would take the table away from all others; so the channel is opened
/// again, the call repeated, and the interrupt put back for the caller to see. Calls must be such that
/// repeating them is harmless: they name their position, and the options do not truncate.
final class UninterruptedChannel implements AutoCloseable {
    /// A call on the channel.
    interface Call<T> {
        T on(FileChannel channel) throws IOException;
    }

    private final Path file;
    private final OpenOption[] options;
    private volatile FileChannel channel;
    private volatile boolean closed;

    UninterruptedChannel(Path file, OpenOption... options) throws IOException {
        this.file = file;
        this.options = options;
        channel = FileChannel.open(file, options);
    }

    <T> T run(Call<T> call) throws IOException {
        boolean interrupted = Thread.interrupted();
        try {
            while (true) {
                FileChannel used = channel;
                try {
                    return call.on(used);
                } catch (ClosedByInterruptException e) {
                    interrupted |= Thread.interrupted();
                    reopen(used);
                } catch (ClosedChannelException e) { // another thread was interrupted
                    reopen(used);
                } catch (IOException e) {
                    throw naming(file, e);
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /// The error of a call on an open file: the system tells it without the file. The reason comes first: who cuts a
    /// line keeps that.
    static IOException naming(Path file, IOException e) {
        String message = String.valueOf(e.getMessage());
        return message.contains(file.toString()) ? e : new IOException(message + ": " + file, e);
    }

    private synchronized void reopen(FileChannel dead) throws IOException {
        if (closed) {
            throw new ClosedChannelException();
        }
        if (channel == dead) {
            channel = FileChannel.open(file, options);
        }
    }

    @Override
    public synchronized void close() throws IOException {
        closed = true;
        channel.close();
    }
}
