package kv.http;

import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import one.nio.net.SelectableJavaSocket;
import one.nio.net.Session;
import one.nio.net.Socket;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// How a connection reads and writes. What is read, and answers but for streams and what a socket does not take
/// at once, goes through [SocketCalls] where that is possible. Answers go to the socket at once as far as it
/// takes them, the rest waits in one-nio's queue, and no more of it than the memory budget allows.
///
/// 1. Guarded by the session's lock, as the queue is.
/// 2. A packet never waits for the acknowledgement of the one before (TCP_NODELAY): a head and the value behind
///    it may be two calls, and a client that expects more before it acknowledges makes the second wait 40 ms.
/// 3. One turn writes at most [#TURN_BYTES_MAX] of a large value, in calls of at most [#CALL_BYTES_MAX]: other
///    connections have their turn in between, and a Java channel keeps a native buffer as large as the largest
///    call for each thread.
abstract class WritingSession extends Session {
    private static final Logger log = LoggerFactory.getLogger(WritingSession.class);
    private static final int CALL_BYTES_MAX = 64 << 10;
    private static final int TURN_BYTES_MAX = 1 << 20;

    /// of the answers that the client does not take
    private final MemoryBudget.Share unwrittenMemory;
    /// what was read and is not used yet
    final UnreadBytes unread;
    final Timeouts timeouts = new Timeouts(this::clientMillis);
    private final int descriptor;
    private long bytesGiven;
    /// the last answer, when nothing but the end of the connection tells where it ends
    private RangeStream endsWithConnectionOrNull;

    WritingSession(Socket socket, MemoryBudget.Account memory) {
        super(socket);
        unwrittenMemory = memory.share();
        unread = new UnreadBytes(memory);
        descriptor = SocketCalls.descriptorOf(socket);
        socket.setNoDelay(true); // one-nio's Java server socket does not pass the option on to what it accepts
    }

    /// Bytes of an answer from an offset on, which go to the socket as it takes them.
    private final class RestOfAnswer extends QueueItem {
        private final byte[] bytes;
        private int at;

        RestOfAnswer(byte[] bytes, int from) {
            this.bytes = bytes;
            this.at = from;
        }

        @Override
        public int remaining() {
            return bytes.length - at;
        }

        @Override
        public int write(Socket to) throws IOException {
            int turnEnd = (int) Math.min(bytes.length, (long) at + TURN_BYTES_MAX);
            int start = at;
            while (at < turnEnd) {
                int count = Math.min(CALL_BYTES_MAX, turnEnd - at);
                int written = send(bytes, at, count, false);
                if (written <= 0) {
                    written = to.write(bytes, at, count, 0); // which tells whether the socket is full or broken
                }
                if (written <= 0) {
                    break;
                }
                at += written;
            }
            timeouts.clientMoved(at - start);
            return at - start;
        }
    }

    /// The clock by which the client is judged. Each selector has its own.
    private long clientMillis() {
        long nowNanos = System.nanoTime();
        return MonotonicClock.millisAt(nowNanos) - heldUpMillis(nowNanos);
    }

    /// For how long this connection's selector could not read it: [RoundSelector#heldUpMillis].
    final long heldUpMillis(long nowNanos) {
        return selector instanceof RoundSelector rounds ? rounds.heldUpMillis(nowNanos) : 0;
    }

    /// True when the socket has taken every answer that was given.
    final boolean isWritten() {
        return queueHead == null;
    }

    /// Bytes of all answers that were given so far; what is streamed does not count, because it waits after
    /// each slice.
    final long bytesGiven() {
        return bytesGiven;
    }

    /// What is written next, if it may have to be read from the store.
    final RangeStream streamFromStoreOrNull() {
        return queueHead instanceof RangeStream stream && stream.needsStore() ? stream : null;
    }

    /// True when ranges are read by other threads than write them.
    abstract boolean readsRangesElsewhere();

    /// Hands what `out` holds to the socket, in order behind what waits already, and empties `out`. May close
    /// the session: when the client leaves too much unread.
    final void flush(Output out) throws IOException {
        if (out.isEmpty()) {
            return;
        }
        int length = out.length();
        bytesGiven += length;
        if (length > 0) {
            int written = isWritten() ? send(out.bytes(), 0, length, out.large() != null) : 0;
            if (written < length) {
                write(new RestOfAnswer(Arrays.copyOfRange(out.bytes(), written, length), 0));
            }
        }
        if (out.large() != null) {
            byte[] large = out.takeLarge();
            bytesGiven += large.length;
            write(new RestOfAnswer(large, 0));
            if (isWritten()) {
                out.largeIsWritten(large);
            }
        }
        if (out.stream() != null) {
            out.stream().whenSent(timeouts::clientMoved);
            out.stream().isReadElsewhere(readsRangesElsewhere());
            if (!out.stream().isChunked()) {
                endsWithConnectionOrNull = out.stream();
            }
            write(out.stream());
        }
        out.clear();
        if (!isWritten()) {
            timeouts.moved();
            timeouts.answerIsIncomplete();
            takeMemory();
        }
    }

    /// How many bytes the socket took; what is wrong with one that took none, the next try tells.
    ///
    /// @param more true when the next call follows at once
    private int send(byte[] bytes, int from, int count, boolean more) throws IOException {
        return Math.max(
                0,
                hasDescriptor()
                        ? SocketCalls.send(descriptor, bytes, from, count, more)
                        : socket.write(bytes, from, count, 0));
    }

    @Override
    public final int read(byte[] data, int offset, int count) throws IOException {
        int received = receive(data, offset, count);
        if (received > 0) {
            timeouts.clientMoved(received);
        }
        return received;
    }

    private int receive(byte[] data, int offset, int count) throws IOException {
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

    /// Keeps `[from, to)` of `b` as the unread bytes. May close the session: when there is no memory for that.
    final void keep(byte[] b, int from, int to) {
        if (!unread.set(b, from, to)) {
            log.debug("connection closed, the memory for unfinished requests is full: {}", getRemoteHost());
            close();
        }
    }

    /// True while the descriptor is this connection's: it is closed under the lock that readers and writers
    /// hold.
    private boolean hasDescriptor() {
        assert Thread.holdsLock(this);
        return descriptor != SocketCalls.NO_DESCRIPTOR && socket.isOpen();
    }

    /// Tells the client that no more comes; false where this socket cannot.
    final boolean halfClose() throws IOException {
        if (!(socket instanceof SelectableJavaSocket java)) {
            return false;
        }
        ((SocketChannel) java.getSelectableChannel()).shutdownOutput();
        return true;
    }

    /// To be called before the connection is closed: where half an answer would seem the whole of it, the client
    /// is told by a reset.
    final void resetIfHalfAnswered() {
        if (endsWithConnectionOrNull == null
                || !endsWithConnectionOrNull.isHalf()
                || !(socket instanceof SelectableJavaSocket java)) {
            return;
        }
        try {
            ((SocketChannel) java.getSelectableChannel()).setOption(StandardSocketOptions.SO_LINGER, 0);
        } catch (IOException e) {
            log.debug("connection not reset, it is closed: {}", e.toString());
        }
    }

    private void takeMemory() {
        long bytes = 0;
        for (QueueItem item = queueHead; item != null; item = item.next()) {
            // The whole array stays until its last byte has gone.
            bytes += item instanceof RestOfAnswer answer ? answer.bytes.length : item.remaining();
        }
        if (!unwrittenMemory.growTo(bytes)) {
            log.debug("connection closed, the memory for unread answers is full: {}", getRemoteHost());
            close();
        }
    }

    /// To be called when nothing waits any more, or never will be written.
    final void giveMemoryBack() {
        timeouts.answerIsComplete();
        unwrittenMemory.giveBack();
        endsWithConnectionOrNull = null;
    }
}
