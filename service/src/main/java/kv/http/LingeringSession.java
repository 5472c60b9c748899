package kv.http;

import java.io.IOException;
import java.nio.channels.CancelledKeyException;
import one.nio.net.Socket;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// How a connection ends: after its last answer, when its client sends no more, or at once.
///
/// ```
///  last answer ──► written ──► half-closed, read on (LINGERING) ──► client closes, or time is up ──► closed
///  end of input ──► what came before is answered ─────────────────────────────────────────────────► closed
///  error, time limit, no memory ──────────────────────────────────────────────────────────────────► closed
/// ```
///
/// 1. A connection that we end is not closed with its last answer: a socket that is closed with unread bytes is
///    reset, and the reset can overtake that answer. So only our end is closed, and what still comes is read
///    and dropped until the client closes its own.
/// 2. A client that closed its end first gets what it has asked for; there is nobody to linger for then.
/// 3. Half an answer that ends with the connection would seem the whole of it: that connection is reset.
/// 4. All fields are guarded by the session's lock.
abstract class LingeringSession extends WritingSession {
    private static final Logger log = LoggerFactory.getLogger(LingeringSession.class);
    /// Of all connections together.
    private static final Rarely LOGGED = Rarely.onceASecond();

    private boolean lastAnswerGiven;
    private boolean inputEnded;
    private boolean closed;

    LingeringSession(Socket socket, MemoryBudget.Account memory) {
        super(socket, memory);
    }

    /// True when nothing is being served, waits to be written or waits for its turn.
    abstract boolean isIdle();

    /// Gives back what the connection holds. Called once, when it has just been closed.
    abstract void release();

    final boolean isClosed() {
        return closed;
    }

    /// True when no request is served any more: what comes is dropped.
    final boolean isLastAnswerGiven() {
        return lastAnswerGiven;
    }

    /// True when the client sends no more.
    final boolean hasInputEnded() {
        return inputEnded;
    }

    /// To be called with the answer of every request: it may be the last one.
    final void answerGivenTo(Request request) {
        lastAnswerGiven = !request.keepAlive;
    }

    /// The last answer was given: drops what came behind its request, and lingers once the socket has taken the
    /// answer. To be called again then.
    final void endWithLastAnswer() throws IOException {
        unread.drop();
        timeouts.requestIsComplete();
        if (isWritten()) {
            linger();
        }
    }

    private void linger() throws IOException {
        giveMemoryBack();
        timeouts.lingeringBegins();
        if (inputEnded || !halfClose()) {
            close();
            return;
        }
        listen(READABLE);
    }

    /// The client sends no more, but may still wait for answers.
    final void endOfInput() {
        inputEnded = true;
        if (!isIdle()) {
            listen(isWritten() ? 0 : WRITEABLE);
        } else {
            scheduleClose();
        }
    }

    @Override
    public final synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        try {
            resetIfHalfAnswered();
            super.close();
        } finally {
            release();
        }
    }

    @Override
    public final void handleException(Throwable e) {
        try {
            tell(e);
        } finally { // a line for which there is no memory costs the line
            close();
        }
    }

    private void tell(Throwable e) {
        if (e instanceof IOException || e instanceof CancelledKeyException) {
            log.debug("connection lost: {}", e.toString());
        } else if (LOGGED.isDue()) { // a client that asks for a damaged range again and again does not fill the disk
            log.error("connection closed after an error: {}", getRemoteHost(), e);
        }
    }
}
