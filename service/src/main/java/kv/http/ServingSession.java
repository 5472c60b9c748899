package kv.http;

import java.io.IOException;
import one.nio.net.Socket;

/// How a connection has its requests answered: at once, at the end of its selector's round, or by another
/// thread, which hands the answer back.
///
/// ```
///  serve ──► here, by the selector's thread ──► the next request
///    │ ├───► at the end of the round ──► serveInRound ──────────────────┐
///    │ │                                      │ would wait              │
///    │ │                                      ▼                         │
///    │ └─── would wait ──────────► serveByPatientThread                 ├──► giveAnswer ──► what came meanwhile
///    │                               │ GET            │ write           │
///    │                               ▼                ▼                 │
///    └───► by a handler ──► serveElsewhere ──► serveStalled ────────────┤
///                                  └────────────────────────────────────┘
/// ```
///
/// 1. Until the answer is back the connection is BUSY: its request belongs to whoever serves it, and no other is
///    begun. Other threads serve it without the lock, and take the lock to hand the answer back.
/// 2. Writes that wait for the disk wait for it together at the end of a round. One that comes to no round, with
///    others before or behind it, is served by [#serveStalled]: it would hold up its selector for a sync, and the
///    next one behind it for another.
/// 3. A value that waits for another thread is paid for from the memory budget; a request that finds no memory,
///    or no room in a queue, is refused at once.
/// 4. The slices of a range that come from the store are read by another thread, too, where that may wait for
///    the disk, and without the lock: who ends connections need not wait for it.
/// 5. All fields are guarded by the session's lock, except where a comment says otherwise.
abstract class ServingSession extends LingeringSession {
    private static final long GONE_AFTER_NANOS = 10_000_000_000L;

    final KvServer server;
    final RequestReader reader;
    /// of the value that waits for another thread, unless it came in pieces: its body has paid for it then
    private final MemoryBudget.Share waitingMemory;
    private boolean busy;
    private boolean writingElsewhere;

    ServingSession(Socket socket, KvServer server, RequestReader reader) {
        super(socket, reader.request().memory);
        this.server = server;
        this.reader = reader;
        this.waitingMemory = reader.request().memory.share();
    }

    /// If nothing waits to be written: goes on with what came while a request was being served, or an answer
    /// written.
    ///
    /// @param out empty
    abstract void workOffUnread(Output out) throws IOException;

    /// True while a request is being served, or waits for that. Without the lock a racy read.
    final boolean isBusy() {
        return busy;
    }

    /// True while another thread writes a slice of a range, or is about to. Without the lock a racy read.
    final boolean isWritingElsewhere() {
        return writingElsewhere;
    }

    /// Answers the reader's request into `out`, or has it answered later.
    ///
    /// @param roundsOrNull where the request may wait for the end of a round
    final void serve(Request request, Output out, RoundSelector roundsOrNull) throws IOException {
        Handler handler = server.handlerOf(request);
        if (!handler.isInline()) {
            flush(out);
            serveBy(handler, this::serveElsewhere, request, out);
        } else if (roundsOrNull != null && roundsOrNull.add(this, request)) {
            busy = true;
        } else if (!waitsForDisk(request) && server.router().tryAnswer(request, out, Patience.NONE)) {
            answerGivenTo(request);
            reader.release();
        } else {
            flush(out);
            serveByPatientThread(request, out);
        }
    }

    private boolean waitsForDisk(Request request) {
        return request.isWrite() && server.router().writesWaitForDisk();
    }

    /// Others wait for this thread: a GET goes where it may wait for the disk, a write where it may wait for that
    /// and for flush and compaction.
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
        if (!waitingMemory.growTo(request.value.length - reader.bytesHeld())) {
            refusal = Answer.MEMORY_FULL;
        } else {
            busy = true;
            server.router().handsOver(request);
            boolean accepted = false;
            try {
                accepted = handler.tryRun(service, this::hasInputEnded);
            } catch (Throwable e) { // no thread could be made, or no task: whoever closes the connection gives back
                busy = false;
                throw e;
            }
            if (!accepted) {
                refusal = server.router().isStopping() ? Answer.STOPPING : Answer.QUEUE_FULL;
            }
        }
        if (refusal != null) {
            busy = false; // in a round it was since it came
            endOfService();
            server.router().refuse(refusal, request, out);
            answerGivenTo(request);
        }
    }

    /// Runs on a worker, without the lock until the answer is there.
    private void serveElsewhere() {
        Output out = null;
        try {
            if (isReadForNobody()) {
                return;
            }
            out = new Output(512);
            if (server.router().tryAnswer(reader.request(), out, Patience.DISK)) {
                giveAnswerFromElsewhere(out);
                return;
            }
            server.router().handsOver(reader.request());
            if (!server.stalledWrites().tryRun(this::serveStalled)) {
                serveStalled();
            }
        } catch (Throwable e) {
            serviceFailed(e, out);
        }
    }

    /// True, and the request has ended, when its client went away while it waited: it shall cost no read.
    ///
    /// A client that only closed its own end may wait for the answer still. Nearly all of them are gone, and an
    /// answer would tell; so one is taken for gone when it has waited for longer than clients do.
    private synchronized boolean isReadForNobody() {
        Request request = reader.request();
        if (request.method != Request.Method.GET) {
            return false;
        }
        if (hasInputEnded() && System.nanoTime() - request.startNanos > GONE_AFTER_NANOS) {
            close();
        }
        if (!isClosed()) {
            return false;
        }
        busy = false;
        endOfService();
        return true;
    }

    /// As [#serveElsewhere], on a thread that may wait for flush, compaction or the disk: it serves no other
    /// connection.
    private void serveStalled() {
        Output out = null;
        try {
            out = new Output(512);
            server.router().answer(reader.request(), out);
            giveAnswerFromElsewhere(out);
        } catch (Throwable e) {
            serviceFailed(e, out);
        }
    }

    /// Not even an answer that it failed could be made, as for want of memory. The thread, which serves others, too,
    /// goes on.
    ///
    /// @param outOrNull may hold a range, which has its cursor and its memory
    private synchronized void serviceFailed(Throwable e, Output outOrNull) {
        busy = false;
        endOfService();
        if (outOrNull != null) {
            outOrNull.backTo(0);
        }
        handleException(e);
    }

    private synchronized void giveAnswerFromElsewhere(Output out) {
        giveAnswer(out);
        timeouts.moved();
    }

    /// Runs on the selector's thread at the end of a round; how long that held the thread up, the selector
    /// knows.
    final synchronized void serveInRound(Output out) {
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
        if (isClosed()) {
            out.backTo(0);
            return;
        }
        try {
            flush(out);
            answerGivenTo(reader.request());
            workOffUnread(out);
        } catch (Throwable e) {
            out.backTo(0);
            handleException(e);
        }
    }

    /// Gives back what the request took. Not while it is [#isBusy]: whoever serves it still reads it.
    final void endOfService() {
        reader.release();
        waitingMemory.giveBack();
    }

    @Override
    protected final void processWrite() throws Exception {
        RangeStream streamOrNull = streamFromStoreOrNull();
        if (streamOrNull != null) {
            boolean elsewhere =
                    server.handlerOfRanges().tryRun(() -> writeElsewhere(streamOrNull), this::hasInputEnded);
            streamOrNull.isReadElsewhere(elsewhere);
            if (elsewhere) {
                writingElsewhere = true;
                listen(0);
                return;
            }
        }
        writeMore();
    }

    @Override
    final boolean readsRangesElsewhere() {
        return !server.handlerOfRanges().isInline();
    }

    private void writeElsewhere(RangeStream stream) {
        Throwable failure = null;
        try {
            stream.readAhead();
        } catch (Throwable e) {
            failure = e;
        }
        synchronized (this) {
            writingElsewhere = false;
            if (isClosed()) {
                return;
            }
            try {
                if (failure != null) {
                    throw failure;
                }
                writeMore();
                timeouts.moved();
                if (timeouts.isAnswerOverdue(server.options())) {
                    close(); // the sweeper finds a client that reads without a break always at work
                }
            } catch (Throwable e) {
                handleException(e);
            }
        }
    }

    private void writeMore() throws Exception {
        super.processWrite();
        if (!isClosed() && isWritten()) {
            giveMemoryBack();
            Output out = new Output(512);
            try {
                workOffUnread(out);
            } catch (Throwable e) { // a range in it has its cursor and its memory until then
                out.backTo(0);
                throw e;
            }
        }
    }
}
