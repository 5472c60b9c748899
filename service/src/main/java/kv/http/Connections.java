package kv.http;

import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// All open connections: which selector holds how many, and a thread that closes the overdue ones.
///
/// New connections go to the selector that holds the fewest. One-nio draws two selectors at random and takes
/// the emptier one, which leaves a handful of connections unevenly spread, and with them the rates that a study
/// compares. One-nio's own clean-up thread is not used: it writes the sessions' ready events from outside and
/// knows nothing of half requests.
final class Connections implements AutoCloseable {
    private static final Logger log = LoggerFactory.getLogger(Connections.class);
    private static final int SWEEP_MILLIS_MAX = 1_000;
    /// Connections that the sweeper looks at before it lets others have the processor.
    private static final int SWEPT_AT_ONCE = 64;

    private final HttpOptions options;
    private final ConnectionLimit limit;
    private final Set<KvSession> open = ConcurrentHashMap.newKeySet();
    private final AtomicIntegerArray bySelector;
    private final AtomicLong accepted = new AtomicLong();
    private final AtomicLong refused = new AtomicLong();
    private final Thread sweeper;
    private String loggedPlacement = "";
    private final Rarely loggedRefusal = Rarely.onceAMinute();
    private volatile boolean stopped;

    Connections(HttpOptions options, ConnectionLimit limit) {
        this.options = options;
        this.limit = limit;
        this.bySelector = new AtomicIntegerArray(options.selectors());
        this.sweeper = Thread.ofPlatform().daemon().name("connection-sweeper").unstarted(this::sweep);
    }

    void start() {
        sweeper.start();
    }

    /// False when as many connections are open as may be. Called by the one accepting thread.
    boolean add(KvSession session) {
        if (open.size() >= limit.max()) {
            refused.incrementAndGet();
            if (loggedRefusal.isDue()) {
                log.warn("new connections are refused: as many are open as may be, {}", limit.max());
            }
            return false;
        }
        accepted.incrementAndGet();
        open.add(session);
        return true;
    }

    /// The number of the selector that is to hold `session`. Called by the one accepting thread.
    int place(KvSession session) {
        int emptiest = 0;
        for (int i = 1; i < bySelector.length(); i++) {
            if (bySelector.get(i) < bySelector.get(emptiest)) {
                emptiest = i;
            }
        }
        bySelector.incrementAndGet(emptiest);
        session.placedAt(emptiest);
        return emptiest;
    }

    void remove(KvSession session) {
        if (open.remove(session) && session.place() >= 0) {
            bySelector.decrementAndGet(session.place());
        }
    }

    Iterable<KvSession> open() {
        return open;
    }

    int size() {
        return open.size();
    }

    int heldBy(int selector) {
        return bySelector.get(selector);
    }

    long accepted() {
        return accepted.get();
    }

    long refused() {
        return refused.get();
    }

    /// Closes connections on which nothing is under way, see [LimitedSession#closeIfQuiet]; true when none are
    /// left open at all.
    boolean closeQuiet(int quietMillis) {
        for (KvSession session : open) {
            session.closeIfQuiet(quietMillis);
        }
        return open.isEmpty();
    }

    private void sweep() {
        long periodMillis = Math.max(
                50,
                Math.min(SWEEP_MILLIS_MAX, Math.min(options.idleTimeoutMillis(), options.requestTimeoutMillis()) / 4));
        while (!stopped) {
            try {
                Thread.sleep(periodMillis);
            } catch (InterruptedException e) {
                return;
            }
            sweep(open, MonotonicClock.millis());
            limit.look();
            logPlacement();
        }
    }

    /// What the sweeper sees of a connection.
    interface Sweepable {
        /// Closes what is overdue.
        void sweep(long nowMillis);
    }

    /// One that fails keeps no other from being swept, now or later.
    ///
    /// Ten thousand are looked at for some milliseconds, mostly waiting for memory. Where selectors have no
    /// [ShortTurns], a thread that only computes is not interrupted for one that wakes up, and all requests of a
    /// selector on the same processor would wait for the end of the sweep.
    static void sweep(Iterable<? extends Sweepable> sessions, long nowMillis) {
        int swept = 0;
        for (Sweepable session : sessions) {
            try {
                session.sweep(nowMillis);
            } catch (RuntimeException | Error e) {
                log.error("a connection was not swept", e);
            }
            if (++swept % SWEPT_AT_ONCE == 0) {
                Thread.yield();
            }
        }
    }

    private void logPlacement() {
        int[] counts = new int[bySelector.length()];
        Arrays.setAll(counts, bySelector::get);
        String placement = Arrays.toString(counts);
        if (!placement.equals(loggedPlacement)) {
            loggedPlacement = placement;
            log.info("connections by selector: {}", placement);
        }
    }

    @Override
    public void close() {
        stopped = true;
        sweeper.interrupt();
        for (KvSession session : open) {
            session.close();
        }
    }
}
