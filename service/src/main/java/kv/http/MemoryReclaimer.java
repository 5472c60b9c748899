package kv.http;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// A thread that cuts connections while the memory for unfinished requests and unread answers is nearly full,
/// so that who comes next finds some. It does not ask who came last, but who wastes most:
///
/// 1. A connection wastes what it holds × the time for which its client has left it there: since when it has
///    taken less than [Timeouts#STRIDE_BYTES] of an unread answer, or sent less than that of a request that it
///    has not finished. Who wastes most is cut first.
/// 2. Less than [#WASTED_MILLIS_MIN] of that is nothing, so who moves at least that stride in that time, some 6
///    KiB/s, is not cut. Nor is one whose request is being served: that is our own time, and so is a pause of
///    the process ([Pauses]).
/// 3. Who holds less than half of what the open connections hold in the mean is never cut.
/// 4. Where all memory is held by those, nobody is cut; requests are refused with 503 when it is full, and of
///    the answers the one that finds no room.
final class MemoryReclaimer implements AutoCloseable {
    /// Linux says that a socket has room again when a third of its buffer is free, which may be a megabyte: a
    /// client on a slow link that reads without a break seems silent for as long as it takes that.
    static final int WASTED_MILLIS_MIN = 3_000;

    private static final Logger log = LoggerFactory.getLogger(MemoryReclaimer.class);
    private static final int PAUSE_MILLIS = 5;
    /// While there is memory it looks, too, whether the process stands still: memory may run short right after
    /// that.
    private static final int IDLE_MILLIS = 200;
    private static final int FAILED_MILLIS = 1_000;

    private final MemoryBudget budget;
    private final Iterable<? extends Holder> holders;
    private final AtomicLong cut = new AtomicLong();
    private final Pauses pauses = new Pauses();
    private final Thread thread =
            Thread.ofPlatform().daemon().name("memory-reclaimer").unstarted(this::run);

    /// A connection, as far as memory goes.
    interface Holder {
        long bytesHeld();

        /// Byte-milliseconds by rule 1, 0 by rule 2. May be called by any thread, and say what was true a
        /// moment ago.
        long wasted(long nowMillis);

        /// Cuts the connection, unless it wastes nothing any more; true when it was cut.
        boolean cutIfWasteful(long nowMillis);
    }

    private record Candidate(Holder holder, long wasted) {}

    MemoryReclaimer(MemoryBudget budget, Iterable<? extends Holder> holders) {
        this.budget = budget;
        this.holders = holders;
    }

    void start() {
        thread.start();
    }

    /// Connections cut so far.
    long cut() {
        return cut.get();
    }

    private void run() {
        try {
            while (true) {
                try {
                    round();
                } catch (RuntimeException | Error e) { // without this thread memory would stay full for ever
                    log.error("a round failed, the next one comes in {} ms", FAILED_MILLIS, e);
                    Thread.sleep(FAILED_MILLIS);
                }
            }
        } catch (InterruptedException e) {
            log.debug("ended");
        }
    }

    private void round() throws InterruptedException {
        long began = MonotonicClock.millis();
        int wait = PAUSE_MILLIS;
        if (budget.isNearlyFull()) {
            Thread.sleep(PAUSE_MILLIS);
        } else {
            wait = IDLE_MILLIS;
            budget.awaitNearlyFull(IDLE_MILLIS);
        }
        long now = MonotonicClock.millis();
        if (pauses.mayJudge(began, wait, now) && budget.isNearlyFull()) {
            relieve(now);
        }
    }

    /// Cuts as many as it takes, those that waste most first.
    void relieve(long nowMillis) {
        int count = 0;
        List<Candidate> candidates = new ArrayList<>();
        for (Holder holder : holders) {
            count++;
            try {
                long wasted = holder.wasted(nowMillis);
                if (wasted > 0) {
                    candidates.add(new Candidate(holder, wasted));
                }
            } catch (RuntimeException e) {
                log.error("a connection is passed over: what it wastes cannot be told", e);
            }
        }
        long halfOfMean = budget.bytesTaken() / Math.max(1, count) / 2;
        candidates.removeIf(candidate -> candidate.holder().bytesHeld() < halfOfMean);
        candidates.sort(Comparator.comparingLong(Candidate::wasted).reversed());
        for (Candidate candidate : candidates) {
            if (!budget.isNearlyFull()) {
                return;
            }
            try {
                if (candidate.holder().cutIfWasteful(nowMillis)) {
                    cut.incrementAndGet();
                }
            } catch (RuntimeException e) {
                log.error("a connection could not be cut", e);
            }
        }
    }

    @Override
    public void close() {
        thread.interrupt();
    }
}
