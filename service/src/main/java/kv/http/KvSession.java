package kv.http;

import java.io.IOException;
import java.nio.channels.CancelledKeyException;
import one.nio.net.Selector;
import one.nio.net.Socket;
import one.nio.net.SocketClosedException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

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
/// 1. At most one request of a connection is being served, or waits for the end of its selector's round or of a
///    write stall to be (BUSY); while it does, at most [#UNREAD_BYTES_MAX] and one read more of what follows
///    are kept, then the socket is not read any more. The same holds while an answer waits for the client to
///    take it (BLOCKED). So a connection costs a bounded amount of memory.
/// 2. A client that sends requests without waiting for answers gets [#TURN_REQUESTS_MAX] answers or
///    [#TURN_BYTES_MAX] in one turn; then it is PAUSED until its selector has had a look at the other
///    connections.
/// 3. All fields are guarded by this session's lock, except where a comment says otherwise.
/// 4. A connection that we end is first half-closed and then read until the client closes it (LINGERING): a
///    socket that is closed with unread bytes is reset, and the reset can overtake the last answer. [Timeouts]
///    says how long each state may last.
final class KvSession extends WritingSession implements MemoryReclaimer.Holder, Connections.Sweepable {
    private static final Logger log = LoggerFactory.getLogger(KvSession.class);
    private static final int UNREAD_BYTES_MAX = 8 << 10;
    private static final int TURN_REQUESTS_MAX = 128;
    private static final int TURN_BYTES_MAX = 1 << 20;

    private final KvServer server;
    private final RequestReader reader;
    private final MemoryBudget.Account memory;
    private final UnreadBytes unread;
    /// of the value that waits for a worker
    private final MemoryBudget.Share waitingMemory;
    private boolean busy;
    private boolean writingElsewhere;
    private boolean paused;
    private boolean lastAnswerGiven;
    private boolean inputEnded;
    private boolean lingering;
    private boolean closed;
    private volatile int place = -1;

    KvSession(Socket socket, KvServer server, RequestReader reader) {
        super(socket, reader.request().memory);
        this.server = server;
        this.reader = reader;
        this.memory = reader.request().memory;
        this.unread = new UnreadBytes(memory);
        this.waitingMemory = memory.share();
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
    }

    int eventsToListen() {
        return eventsToListen;
    }

    /// Its selector found it ready for `readyEvents`.
    void selected(int readyEvents) {
        events = readyEvents;
    }

    @Override
    public synchronized void process(byte[] buffer) throws Exception {
        timeouts.isMoving();
        super.process(buffer);
        timeouts.moved();
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
        if (lingering || lastAnswerGiven) {
            return;
        }
        if (busy) {
            keep(buffer, 0, length);
            if (length >= UNREAD_BYTES_MAX && !closed) {
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
        while (at < length && !busy && isWritten() && !lastAnswerGiven && !closed) {
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
                lastAnswerGiven = !request.keepAlive;
            } else {
                out.expectBody();
                flush(out);
            }
            if (out.isFull()) {
                flush(out);
            }
        }
        flush(out);
        if (closed) {
            return;
        }
        if (lastAnswerGiven) {
            unread.drop();
            timeouts.requestIsComplete();
            if (isWritten()) {
                linger();
            }
            return;
        }
        keep(b, at, length);
        if (closed) {
            return;
        }
        if (!isIdle() || unread.length() == 0 && reader.isIdle()) {
            timeouts.requestIsComplete();
        } else {
            timeouts.requestIsIncomplete();
        }
        if (paused) {
            listen(WRITEABLE); // the socket has room, so the next look at all connections finds this one ready
        } else if (inputEnded && isIdle()) {
            scheduleClose();
        }
    }

    /// True when nothing is being served, waits to be written or waits for its turn.
    private boolean isIdle() {
        return !busy && isWritten() && !paused;
    }

    private void serve(Request request, Output out, RoundSelector roundsOrNull) throws IOException {
        Handler handler = server.handlerOf(request);
        if (!handler.isInline()) {
            flush(out);
            serveBy(handler, this::serveElsewhere, request, out);
        } else if (roundsOrNull != null && roundsOrNull.add(this, request)) {
            busy = true;
        } else if (server.router().tryAnswer(request, out, Patience.NONE)) {
            lastAnswerGiven = !request.keepAlive;
            reader.release();
        } else {
            flush(out);
            serveByPatientThread(request, out);
        }
    }

    /// Others wait for this thread: a GET goes where it may wait for the disk, a write for flush and compaction.
    private void serveByPatientThread(Request request, Output out) {
        if (request.method == Request.Method.GET) {
            serveBy(server.coldReads(), this::serveElsewhere, request, out);
        } else {
            serveBy(server.stalledWrites(), this::serveStalled, request, out);
        }
    }

    /// Has `service` of the request run by `handler`, or refuses the request.
    private void serveBy(Handler handler, Runnable service, Request request, Output out) {
        Answer refusal = null;
        if (!waitingMemory.growTo(request.value.length)) {
            refusal = Answer.MEMORY_FULL;
        } else {
            busy = true;
            server.router().handsOver(request);
            if (!handler.tryRun(service)) {
                busy = false;
                refusal = Answer.QUEUE_FULL;
            }
        }
        if (refusal != null) {
            endOfService();
            server.router().refuse(refusal, request, out);
            lastAnswerGiven = !request.keepAlive;
        }
    }

    /// Runs on a worker, without the lock until the answer is there.
    private void serveElsewhere() {
        Output out = new Output(512);
        if (server.router().tryAnswer(reader.request(), out, Patience.DISK)) {
            giveAnswerFromElsewhere(out);
            return;
        }
        server.router().handsOver(reader.request());
        if (!server.stalledWrites().tryRun(this::serveStalled)) {
            serveStalled();
        }
    }

    /// As [#serveElsewhere], on a thread that may wait for flush or compaction: it serves no other connection.
    private void serveStalled() {
        Output out = new Output(512);
        server.router().answer(reader.request(), out);
        giveAnswerFromElsewhere(out);
    }

    private synchronized void giveAnswerFromElsewhere(Output out) {
        giveAnswer(out);
        timeouts.moved();
    }

    /// Runs on the selector's thread at the end of a round; how long that held the thread up, the selector
    /// knows.
    synchronized void serveInRound(Output out) {
        try {
            Request request = reader.request();
            if (!server.router().tryAnswer(request, out, Patience.NONE)) {
                serveByPatientThread(request, out);
                if (busy) {
                    return;
                }
            }
        } catch (Throwable e) { // not even an answer that it failed: the others of the round get theirs
            handleException(e);
        }
        giveAnswer(out);
    }

    private void giveAnswer(Output out) {
        busy = false;
        endOfService();
        if (closed) {
            out.backTo(0);
            return;
        }
        try {
            flush(out);
            lastAnswerGiven = !reader.request().keepAlive;
            workOffUnread(out);
        } catch (Throwable e) {
            out.backTo(0);
            handleException(e);
        }
    }

    private void endOfService() {
        reader.release();
        waitingMemory.giveBack();
    }

    /// Nothing is being served and nothing waits to be written: go on with what came meanwhile.
    private void workOffUnread(Output out) throws IOException {
        if (!isWritten()) {
            return;
        }
        int length = unread.length();
        work(unread.take(), length, out, null);
        if (!closed && isIdle()) {
            listen(READABLE);
        }
    }

    @Override
    protected void processWrite() throws Exception {
        if (writesFromStore() && server.handlerOfRanges().tryRun(this::writeElsewhere)) {
            writingElsewhere = true;
            listen(0);
            return;
        }
        writeMore();
    }

    private synchronized void writeElsewhere() {
        writingElsewhere = false;
        if (closed) {
            return;
        }
        try {
            writeMore();
            timeouts.moved();
        } catch (Throwable e) {
            handleException(e);
        }
    }

    private void writeMore() throws Exception {
        super.processWrite();
        if (!closed && isWritten()) {
            paused = false;
            giveMemoryBack();
            workOffUnread(new Output(512));
        }
    }

    private void keep(byte[] b, int from, int to) {
        if (!unread.set(b, from, to)) {
            log.debug("connection closed, the memory for unfinished requests is full: {}", getRemoteHost());
            close();
        }
    }

    /// The client sends no more, but may still wait for answers.
    private void endOfInput() {
        inputEnded = true;
        if (!isIdle()) {
            listen(isWritten() ? 0 : WRITEABLE);
        } else {
            scheduleClose();
        }
    }

    private void linger() throws IOException {
        lingering = true;
        timeouts.lingeringBegins();
        if (inputEnded || !halfClose()) {
            close();
            return;
        }
        listen(READABLE);
    }

    /// Called about once a second by one thread.
    @Override
    public void sweep(long nowMillis) {
        if (busy) { // a racy read: at worst decided one sweep later
            return;
        }
        if (overdue(nowMillis) != Timeouts.Overdue.NOTHING) {
            endIfOverdue(nowMillis);
        }
    }

    private Timeouts.Overdue overdue(long nowMillis) {
        return timeouts.overdue(nowMillis, readsAtOnceSinceMillis(nowMillis), server.options());
    }

    private synchronized void endIfOverdue(long nowMillis) {
        if (busy || closed) { // a request came meanwhile
            return;
        }
        switch (overdue(nowMillis)) {
            case NOTHING -> {}
            case CONNECTION -> close();
            case REQUEST -> giveUpRequest();
        }
    }

    @Override
    public long bytesHeld() {
        return memory.bytesHeld();
    }

    @Override
    public long wasted(long nowMillis) {
        long since = Math.max(timeouts.waitsForClientSinceMillis(), readsAtOnceSinceMillis(nowMillis));
        long millis = nowMillis - since;
        return busy || writingElsewhere || millis < MemoryReclaimer.WASTED_MILLIS_MIN ? 0 : memory.bytesHeld() * millis;
    }

    @Override
    public synchronized boolean cutIfWasteful(long nowMillis) {
        if (closed || wasted(nowMillis) == 0) {
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

    private void giveUpRequest() {
        if (!isIdle()) {
            return;
        }
        try {
            Request request = reader.request();
            request.clear();
            request.rejectForGood(Answer.REQUEST_TIMEOUT);
            request.startNanos = System.nanoTime();
            Output out = new Output(512);
            server.router().refuse(Answer.REQUEST_TIMEOUT, request, out);
            flush(out);
            lastAnswerGiven = true;
            timeouts.requestIsComplete();
            unread.drop();
            if (isWritten()) {
                linger();
            }
        } catch (IOException e) {
            close();
        }
    }

    /// Closes when nothing of a request or an answer is under way, and what the client sent up to `quietMillis`
    /// ago was read.
    synchronized void closeIfQuiet(int quietMillis) {
        long now = MonotonicClock.millis();
        if (isIdle() && unread.length() == 0 && reader.isIdle() && now - readsAtOnceSinceMillis(now) >= quietMillis) {
            close();
        }
    }

    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        super.close();
        if (!busy) {
            endOfService();
        }
        giveMemoryBack();
        unread.drop();
        server.connections().remove(this);
    }

    @Override
    public void handleException(Throwable e) {
        if (e instanceof IOException || e instanceof CancelledKeyException) {
            log.debug("connection lost: {}", e.toString());
        } else {
            log.error("connection closed after an error: {}", getRemoteHost(), e);
        }
        close();
    }
}
