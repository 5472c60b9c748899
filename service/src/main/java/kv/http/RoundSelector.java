package kv.http;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SelectionKey;
import java.util.Arrays;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import kv.lsm.disk.MajorFaults;
import one.nio.net.SelectableJavaSocket;
import one.nio.net.Selector;
import one.nio.net.Session;
import one.nio.net.Socket;
import one.nio.server.SelectorThread;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Takes the place of one-nio's Java selector: finds out which connections are ready, and answers those whose
/// whole input was one GET, PUT or DELETE together, when all ready ones were read or [#ROUND_MAX] of them wait
/// ([#ROUND_TO_DISK_MAX] with the log mode ALWAYS). Before it answers, the store fetches from memory what all
/// of these requests will look at, so that they do not wait for it one after the other; and writes that wait
/// for the disk wait together.
///
/// ```
/// select ─► connection ─► connection ─► … ─► prefetch ─► begin  ─► answer ─► answer ─► …  ─► select
///           read, parse   read, parse        all keys    writes    GETs, then writes
/// ```
///
/// 1. Connections, rounds and the iterator belong to the selector's thread, but for those methods that register
///    a connection or change what it listens to. The thread holds no connection's lock while a round is
///    answered.
/// 2. One-nio's server has no way to be given a selector: a final field of its thread is replaced before that
///    starts. Where this is refused, and with one-nio's native sockets, its own selector stays and each request
///    is answered when it is read.
final class RoundSelector extends Selector implements Iterator<Session> {
    /// About as many loads as one core has under way at a time.
    static final int ROUND_MAX = 16;

    /// Where writes wait for the disk, which takes far longer than loads do: the more wait together, the less
    /// each one costs.
    static final int ROUND_TO_DISK_MAX = 64;

    private static final long HELD_UP_NANOS = 100_000_000;

    private static final Logger log = LoggerFactory.getLogger(RoundSelector.class);

    private final KvServer server;
    private final java.nio.channels.Selector selector;
    private final Queue<KvSession> registered = new ConcurrentLinkedQueue<>();
    private final Consumer<SelectionKey> whenReady = this::isReady;
    private final Waiting gets = new Waiting();
    private final Waiting writes = new Waiting();
    private KvSession[] ready = new KvSession[64];
    private int readyCount;
    private int next;
    private int roundMax = ROUND_MAX;
    private volatile boolean selecting;
    private volatile long lastWakeupNanos = System.nanoTime();
    private volatile HeldUp heldUp = new HeldUp(0, lastWakeupNanos);
    private long clientMillisOfTurn = MonotonicClock.millisAt(lastWakeupNanos);
    private boolean hasBegun;

    /// The times for which requests have held the thread up, each for more than [#HELD_UP_NANOS]; one that is not
    /// over does not count.
    ///
    /// @param nanos all of them together
    /// @param untilNanos when the last one was over
    private record HeldUp(long nanos, long untilNanos) {}

    /// Requests of one kind that wait for the end of the round, each with its connection and its key.
    private static final class Waiting {
        final ServingSession[] sessions = new ServingSession[ROUND_TO_DISK_MAX];
        final Request[] requests = new Request[ROUND_TO_DISK_MAX];
        final byte[][] keys = new byte[ROUND_TO_DISK_MAX][];
        int count;

        void add(ServingSession session, Request request) {
            sessions[count] = session;
            requests[count] = request;
            keys[count++] = request.key;
        }

        void answer(Output out) {
            int waiting = count;
            count = 0;
            Arrays.fill(requests, 0, waiting, null);
            Arrays.fill(keys, 0, waiting, null);
            for (int i = 0; i < waiting; i++) {
                ServingSession session = sessions[i];
                sessions[i] = null;
                session.serveInRound(out);
            }
        }
    }

    private RoundSelector(KvServer server) throws IOException {
        this.server = server;
        selector = java.nio.channels.Selector.open();
    }

    /// Gives a selector to a thread that has not started, if that is possible.
    static void replaceSelectorOf(SelectorThread thread, KvServer server) throws IOException {
        if (Socket.USE_NATIVE_SOCKET) {
            return;
        }
        Selector replaced = thread.selector;
        RoundSelector replacement = new RoundSelector(server);
        try {
            Field field = SelectorThread.class.getField("selector");
            field.setAccessible(true);
            field.set(thread, replacement);
            replaced.close();
        } catch (ReflectiveOperationException | RuntimeException e) {
            replacement.close();
            log.info("requests are answered one by one, one-nio's selector cannot be replaced: {}", e.toString());
        }
    }

    /// Has `request` of `session`, which is being processed and has read nothing else, answered at the end of
    /// the round; false when it is none that waits.
    boolean add(ServingSession session, Request request) {
        if (request.target != Target.ENTITY) {
            return false;
        }
        switch (request.method) {
            case GET -> gets.add(session, request);
            case PUT, DELETE -> writes.add(session, request);
            case POST, HEAD, OTHER -> {
                return false;
            }
        }
        return true;
    }

    /// When the connections that are being read now were found ready, by [System#nanoTime]. For the selector's
    /// thread.
    long roundStartNanos() {
        return lastWakeupNanos;
    }

    /// When the connections that are being read now were found ready, by the clock of their [Timeouts]. For the
    /// selector's thread. At most [#HELD_UP_NANOS] earlier than now: where requests hold the thread up for longer,
    /// that clock stands still.
    long clientMillisOfTurn() {
        return clientMillisOfTurn;
    }

    private void answerRound() {
        Router router = server.router();
        prefetch(router);
        router.begin(writes.requests, writes.count);
        gets.answer(server.output());
        writes.answer(server.output());
    }

    private void prefetch(Router router) {
        SlowRequestLog slowOrNull = router.slowRequestsOrNull();
        if (slowOrNull == null) {
            router.prefetch(gets.keys, gets.count, writes.keys, writes.count);
            return;
        }
        MajorFaults beforeOrNull = MajorFaults.ofThreadOrNull();
        router.prefetch(gets.keys, gets.count, writes.keys, writes.count);
        slowOrNull.prefetched(gets.requests, gets.count, beforeOrNull);
        slowOrNull.prefetched(writes.requests, writes.count, beforeOrNull);
    }

    @Override
    public Iterator<Session> select() {
        if (!hasBegun) {
            hasBegun = true;
            ShortTurns.askForCallingThread();
        }
        readyCount = 0;
        next = 0;
        long now = System.nanoTime();
        long busyNanos = now - lastWakeupNanos;
        if (busyNanos > HELD_UP_NANOS) {
            heldUp = new HeldUp(heldUp.nanos() + busyNanos, now);
        }
        selecting = true;
        try {
            do {
                registerWaiting();
            } while (selector.select(whenReady) == 0);
        } catch (ClosedSelectorException e) {
            log.debug("selector closed");
        } catch (IOException | RuntimeException e) {
            log.warn("select failed", e);
        }
        long wakeupNanos = System.nanoTime();
        lastWakeupNanos = wakeupNanos;
        clientMillisOfTurn = MonotonicClock.millisAt(wakeupNanos) - heldUp.nanos() / 1_000_000;
        selecting = false;
        roundMax = server.router().writesWaitForDisk() ? ROUND_TO_DISK_MAX : ROUND_MAX;
        return this;
    }

    /// Since when its connections have been read as soon as something came: what a client sent before may have
    /// lain unread for as long as a request held the thread up. `nowMillis` while one does. May be called by any
    /// thread.
    long readsAtOnceSinceMillis(long nowMillis) {
        boolean isHeldUp = !selecting && System.nanoTime() - lastWakeupNanos > HELD_UP_NANOS;
        return isHeldUp ? nowMillis : MonotonicClock.millisAt(heldUp.untilNanos());
    }

    /// For how long requests have held the thread up so far: what clients sent meanwhile lay unread, which must not
    /// be taken for their silence. Not less than it was at `nowNanos`, a moment before the call, so that no client
    /// is charged with more than the time that has passed. May be called by any thread.
    long heldUpMillis(long nowNanos) {
        while (true) {
            long wakeupNanos = lastWakeupNanos;
            boolean waits = selecting;
            HeldUp past = heldUp;
            if (wakeupNanos == lastWakeupNanos) { // all three are of one turn of the thread
                boolean isOver = waits || past.untilNanos() - wakeupNanos > 0;
                long busyNanos = isOver ? 0 : nowNanos - wakeupNanos;
                return (past.nanos() + (busyNanos > HELD_UP_NANOS ? busyNanos : 0)) / 1_000_000;
            }
        }
    }

    private void isReady(SelectionKey key) {
        try {
            KvSession session = (KvSession) key.attachment();
            session.selected(key.readyOps());
            if (readyCount == ready.length) {
                ready = Arrays.copyOf(ready, 2 * readyCount);
            }
            ready[readyCount++] = session;
        } catch (CancelledKeyException e) {
            log.debug("connection closed while it was selected");
        }
    }

    private void registerWaiting() throws IOException {
        for (KvSession session = registered.poll(); session != null; session = registered.poll()) {
            SelectableChannel channel = channelOf(session);
            if (channel.isOpen()) {
                channel.register(selector, session.eventsToListen(), session);
            }
        }
    }

    @Override
    public boolean hasNext() {
        boolean more = next < readyCount;
        if (!more || gets.count + writes.count == roundMax) {
            answerRound();
        }
        return more;
    }

    @Override
    public Session next() {
        if (next >= readyCount) {
            throw new NoSuchElementException();
        }
        Session session = ready[next];
        ready[next++] = null;
        return session;
    }

    @Override
    public void register(Session session) {
        ((KvSession) session).heldBy(this);
        enable(session);
    }

    @Override
    public void unregister(Session session) {
        ((KvSession) session).heldBy(null);
        disable(session);
    }

    @Override
    public void enable(Session session) {
        registered.add((KvSession) session);
        selector.wakeup();
    }

    @Override
    public void disable(Session session) {
        SelectionKey key = channelOf(session).keyFor(selector);
        if (key != null) {
            key.cancel();
            if (selecting) {
                selector.wakeup(); // a closed channel keeps its descriptor, and its reset, until the next select
            }
        }
    }

    @Override
    public void listen(Session session, int events) {
        SelectionKey key = channelOf(session).keyFor(selector);
        if (key != null) { // or it will be registered with what it listens to then
            key.interestOps(events);
            selector.wakeup();
        }
    }

    private static SelectableChannel channelOf(Session session) {
        return ((SelectableJavaSocket) session.socket()).getSelectableChannel();
    }

    @Override
    public int size() {
        return selector.keys().size();
    }

    @Override
    public boolean isOpen() {
        return selector.isOpen();
    }

    @Override
    public void close() {
        try {
            selector.close();
        } catch (IOException e) {
            log.debug("selector not closed: {}", e.toString());
        }
    }

    /// The connections that it holds.
    @Override
    public Iterator<Session> iterator() {
        return selector.keys().stream().map(key -> (Session) key.attachment()).iterator();
    }

    @Override
    public long lastWakeupTime() {
        return lastWakeupNanos;
    }
}
