package kv.http;

import java.io.IOException;
import one.nio.net.Selector;
import one.nio.net.Socket;
import one.nio.net.SocketClosedException;

/// One connection: reads what comes, has requests answered one after the other, writes the answers in order.
///
/// ```
///          READING ◄──────────────────────┐
///  request │      │ error or close        │ answered, all written, unread bytes worked off
///          ▼      ▼                       │
///   BUSY, BLOCKED or PAUSED ─────────────►┘
///                 └──► LINGERING ──► closed
/// ```
///
/// Here it reads, and takes turns with other connections. The rest is in the layers below, each of which knows
/// only those above it in this table. They are one object because they share one lock, and because one-nio has
/// one object for each connection.
///
/// | layer              | what it does                                                              |
/// |--------------------|---------------------------------------------------------------------------|
/// | [WritingSession]   | receives and sends bytes; keeps answers until they are taken (BLOCKED)    |
/// | [LingeringSession] | ends the connection (LINGERING)                                           |
/// | [ServingSession]   | has a request answered, here or by another thread (BUSY)                  |
/// | [LimitedSession]   | ends what takes longer than its [Timeouts], or wastes scarce memory       |
///
/// 1. At most one request of a connection is being served, or waits for the end of its selector's round or of a
///    write stall to be (BUSY); while it does, at most [#UNREAD_BYTES_MAX] and one read more of what follows
///    are kept, then the socket is not read any more. The same holds while an answer waits for the client to
///    take it (BLOCKED). So a connection costs a bounded amount of memory.
/// 2. A client that sends requests without waiting for answers gets [#TURN_REQUESTS_MAX] answers or
///    [#TURN_BYTES_MAX] in one turn; then it is PAUSED until its selector has had a look at the other
///    connections.
/// 3. All fields are guarded by this session's lock, except where a comment says otherwise.
final class KvSession extends LimitedSession {
    private static final int UNREAD_BYTES_MAX = 8 << 10;
    private static final int TURN_REQUESTS_MAX = 128;
    private static final int TURN_BYTES_MAX = 1 << 20;

    private boolean paused;
    private volatile int place = -1;

    KvSession(Socket socket, KvServer server, RequestReader reader) {
        super(socket, server, reader);
    }

    /// The selector that holds this connection, or -1 before one does.
    int place() {
        return place;
    }

    void placedAt(int selectorNumber) {
        place = selectorNumber;
    }

    /// @param selectorOrNull its new one
    void heldBy(Selector selectorOrNull) {
        selector = selectorOrNull;
        timeouts.moved(); // what was noted by the clock of another is not comparable
    }

    int eventsToListen() {
        return eventsToListen;
    }

    /// Its selector found it ready for `readyEvents`.
    void selected(int readyEvents) {
        events = readyEvents;
    }

    /// With our selector without one-nio's part, which notes the wall clock twice for each request for a clean-up
    /// that is off; its sockets, which are Java's, never ask for the opposite of what they were to do, as TLS does.
    @Override
    public synchronized void process(byte[] buffer) throws Exception {
        timeouts.isMoving();
        if (selector instanceof RoundSelector rounds) {
            processEvents(buffer);
            timeouts.movedAt(rounds.clientMillisOfTurn());
        } else {
            super.process(buffer);
            timeouts.moved();
        }
    }

    private void processEvents(byte[] buffer) throws Exception {
        if ((events & CLOSING) != 0) {
            close();
            return;
        }
        if ((events & WRITEABLE) != 0) {
            processWrite();
        }
        if ((events & READABLE) != 0) {
            processRead(buffer);
        }
    }

    @Override
    protected void processRead(byte[] buffer) throws IOException {
        if (!isWritten() || paused) {
            return; // selected before a worker's answer filled the socket; reading would stop the wait for room in it
        }
        int length = unread.length();
        unread.copyTo(buffer);
        try {
            length += read(buffer, length, buffer.length - length);
        } catch (SocketClosedException e) {
            endOfInput();
            return;
        }
        if (isLastAnswerGiven()) {
            return;
        }
        if (isBusy()) {
            keep(buffer, 0, length);
            if (length >= UNREAD_BYTES_MAX && !isClosed()) {
                listen(0);
            }
            return;
        }
        Output out = server.output();
        try {
            work(buffer, length, out, selector instanceof RoundSelector rounds ? rounds : null);
        } catch (Throwable e) {
            out.backTo(0); // the next connection of this thread writes into the same output
            throw e;
        }
    }

    /// Serves what `[0, length)` of `b` holds and keeps the rest.
    ///
    /// @param roundsOrNull where a request may wait that is alone in `b`
    private void work(byte[] b, int length, Output out, RoundSelector roundsOrNull) throws IOException {
        int at = 0;
        int requestsLeft = TURN_REQUESTS_MAX;
        long bytesAtEnd = bytesGiven() + TURN_BYTES_MAX;
        while (at < length && !isBusy() && isWritten() && !isLastAnswerGiven() && !isClosed()) {
            if (requestsLeft-- == 0 || bytesGiven() >= bytesAtEnd) {
                paused = true;
                break;
            }
            RequestReader.Event event = reader.read(b, at, length);
            at = reader.position();
            Request request = reader.request();
            if (event == RequestReader.Event.MORE) {
                break;
            }
            request.startNanos = roundsOrNull != null ? roundsOrNull.roundStartNanos() : System.nanoTime();
            if (event != RequestReader.Event.EXPECTS_CONTINUE) {
                timeouts.requestIsComplete(); // half of the next one may follow, which has its own time
            }
            if (event == RequestReader.Event.REQUEST) {
                serve(request, out, at == length && out.isEmpty() ? roundsOrNull : null);
            } else if (event == RequestReader.Event.REJECTED) {
                if (request.rejection != null) {
                    server.router().refuse(request.rejection, request, out);
                }
                answerGivenTo(request);
            } else {
                out.expectBody();
                flush(out);
            }
            if (out.isFull()) {
                flush(out);
            }
        }
        flush(out);
        if (isClosed()) {
            return;
        }
        if (isLastAnswerGiven()) {
            endWithLastAnswer();
            return;
        }
        keep(b, at, length);
        if (isClosed()) {
            return;
        }
        if (!isIdle() || unread.length() == 0 && reader.isIdle()) {
            timeouts.requestIsComplete();
        } else {
            timeouts.requestIsIncomplete();
        }
        if (paused) {
            listen(WRITEABLE); // the socket has room, so the next look at all connections finds this one ready
        } else if (hasInputEnded() && isIdle()) {
            scheduleClose();
        }
    }

    @Override
    void workOffUnread(Output out) throws IOException {
        if (!isWritten()) {
            return;
        }
        paused = false;
        int length = unread.length();
        work(unread.take(), length, out, null);
        if (!isClosed() && isIdle()) {
            listen(READABLE);
        }
    }

    @Override
    boolean isIdle() {
        return !isBusy() && isWritten() && !paused;
    }

    @Override
    void release() {
        if (!isBusy()) {
            endOfService();
        }
        giveMemoryBack();
        unread.drop();
        server.connections().remove(this);
    }
}
