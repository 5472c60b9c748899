package kv.http;

import java.io.IOException;
import java.util.Arrays;
import one.nio.net.Session;
import one.nio.net.Socket;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// How a connection reads and writes. What is read, and answers but for large values, streams and what a socket does not take at once, goes
/// through [SocketCalls] where that is possible. Answers go to the socket at once as far as it takes them, the rest waits in one-nio's queue,
/// and no more of it than the memory budget allows.
///
/// Guarded by the session's lock, as the queue is.
abstract class WritingSession extends Session {
    private static final Logger log = LoggerFactory.getLogger(WritingSession.class);

    /// of the answers that the client does not take
    private final MemoryBudget.Share unwrittenMemory;
    private final int descriptor;

    WritingSession(Socket socket, MemoryBudget budget) {
        super(socket);
        unwrittenMemory = budget.share();
        descriptor = SocketCalls.descriptorOf(socket);
    }

    /// True when the socket has taken every answer that was given.
    final boolean isWritten() {
        return queueHead == null;
    }

    /// True when the next bytes to write are read from the store first.
    final boolean writesFromStore() {
        return queueHead instanceof RangeStream stream && stream.needsStore();
    }

    /// Hands what `out` holds to the socket, in order behind what waits already, and empties `out`. May close the session:
    /// when the client leaves too much unread.
    final void flush(Output out) throws IOException {
        if (out.isEmpty()) {
            return;
        }
        int length = out.length();
        if (length > 0) {
            int written = isWritten() ? send(out.bytes(), length) : 0;
            if (written < length) {
                write(Arrays.copyOfRange(out.bytes(), written, length), 0, length - written);
            }
        }
        if (out.large() != null) {
            write(out.large(), 0, out.large().length);
        }
        if (out.stream() != null) {
            write(out.stream());
        }
        out.clear();
        if (!isWritten()) {
            takeMemory();
        }
    }

    /// How many bytes the socket took; what is wrong with one that took none, the next try tells.
    private int send(byte[] bytes, int length) throws IOException {
        return Math.max(0, hasDescriptor() ? SocketCalls.send(descriptor, bytes, length) : socket.write(bytes, 0, length, 0));
    }

    @Override
    public final int read(byte[] data, int offset, int count) throws IOException {
        if (!hasDescriptor()) {
            return super.read(data, offset, count);
        }
        int received = SocketCalls.receive(descriptor, data, offset, count);
        if (received == 0) {
            return super.read(data, offset, count); // which tells the end of input in one-nio's way
        }
        listen(READABLE);
        return Math.max(0, received);
    }

    /// True while the descriptor is this connection's: it is closed under the lock that readers and writers hold.
    private boolean hasDescriptor() {
        assert Thread.holdsLock(this);
        return descriptor != SocketCalls.NO_DESCRIPTOR && socket.isOpen();
    }

    private void takeMemory() {
        long bytes = 0;
        for (QueueItem item = queueHead; item != null; item = item.next()) {
            bytes += item.remaining();
        }
        if (!unwrittenMemory.growTo(bytes)) {
            log.debug("connection closed, the memory for unread answers is full: {}", getRemoteHost());
            close();
        }
    }

    /// To be called when nothing waits any more, or never will be written.
    final void giveMemoryBack() {
        unwrittenMemory.giveBack();
    }
}
