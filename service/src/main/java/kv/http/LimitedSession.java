package kv.http;

import java.io.IOException;
import one.nio.net.Socket;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// What a connection may cost the others: the time that it may take for a request or an answer, and the memory
/// that it may keep meanwhile. Ends a connection that goes beyond it.
///
/// | who asks                                  | what it ends                     | how            |
/// |-------------------------------------------|----------------------------------|----------------|
/// | the sweeper of [Connections]              | what is beyond its [Timeouts]    | 408, or closed |
/// | [MemoryReclaimer], while memory is scarce | what wastes most of it           | closed         |
/// | [KvServer], when it stops                 | what is quiet                    | closed         |
///
/// 1. A connection whose request is being served, or a slice of whose range is being read, is not ended: that
///    takes our own time, not the client's.
/// 2. Nor is a client taken for silent for a time in which its selector did not come to read it: its clock stands
///    still meanwhile, and goes on afterwards.
/// 3. The sweeper and the reclaimer look without the session's lock, so that they wait for no connection: at
///    worst they decide one look later. Before they end one they look again, with the lock.
/// 4. A range whose slices other threads read is at work nearly whenever the sweeper looks, if its client takes
///    it without a break. So whoever has read a slice looks at its time, too ([Timeouts#isAnswerOverdue]).
abstract class LimitedSession extends ServingSession implements MemoryReclaimer.Holder, Connections.Sweepable {
    private static final Logger log = LoggerFactory.getLogger(LimitedSession.class);

    private final MemoryBudget.Account memory;

    LimitedSession(Socket socket, KvServer server, RequestReader reader) {
        super(socket, server, reader);
        this.memory = reader.request().memory;
    }

    /// Called about once a second by one thread.
    @Override
    public final void sweep(long nowMillis) {
        if (isAtWork()) {
            return;
        }
        if (overdue(nowMillis) != Timeouts.Overdue.NOTHING) {
            endIfOverdue(nowMillis);
        }
    }

    private boolean isAtWork() {
        return isBusy() || isWritingElsewhere();
    }

    private Timeouts.Overdue overdue(long nowMillis) {
        return timeouts.overdue(clientMillis(nowMillis), server.options());
    }

    /// `nowMillis` by the clock of [#timeouts].
    private long clientMillis(long nowMillis) {
        return nowMillis - heldUpMillis(System.nanoTime());
    }

    private synchronized void endIfOverdue(long nowMillis) {
        if (isAtWork() || isClosed()) { // a request came meanwhile
            return;
        }
        switch (overdue(nowMillis)) {
            case NOTHING -> {}
            case CONNECTION -> close();
            case REQUEST -> giveUpRequest();
        }
    }

    private void giveUpRequest() {
        if (!isIdle()) {
            return;
        }
        try {
            Request request = reader.request();
            if (reader.isAnswered()) { // and the rest of its body did not come
                request.rejectForGood(null);
            } else {
                request.clear();
                request.rejectForGood(Answer.REQUEST_TIMEOUT);
                request.startNanos = System.nanoTime();
                Output out = new Output(512);
                server.router().refuse(Answer.REQUEST_TIMEOUT, request, out);
                flush(out);
            }
            answerGivenTo(request);
            endWithLastAnswer();
        } catch (IOException e) {
            close();
        }
    }

    /// Closes when nothing of a request or an answer is under way, and what the client sent up to `quietMillis`
    /// ago was read.
    final synchronized void closeIfQuiet(int quietMillis) {
        long now = MonotonicClock.millis();
        if (isIdle() && unread.length() == 0 && reader.isIdle() && now - readsAtOnceSinceMillis(now) >= quietMillis) {
            close();
        }
    }

    @Override
    public final long bytesHeld() {
        return memory.bytesHeld();
    }

    @Override
    public final long wasted(long nowMillis) {
        long millis = clientMillis(nowMillis) - timeouts.waitsForClientSinceMillis();
        return isAtWork() || millis < MemoryReclaimer.WASTED_MILLIS_MIN ? 0 : memory.bytesHeld() * millis;
    }

    @Override
    public final synchronized boolean cutIfWasteful(long nowMillis) {
        if (isClosed() || wasted(nowMillis) == 0) {
            return false;
        }
        log.debug(
                "connection cut, it keeps {} bytes for too long while memory is scarce: {}",
                memory.bytesHeld(),
                getRemoteHost());
        close();
        return true;
    }

    private long readsAtOnceSinceMillis(long nowMillis) {
        return selector instanceof RoundSelector rounds ? rounds.readsAtOnceSinceMillis(nowMillis) : 0;
    }
}
