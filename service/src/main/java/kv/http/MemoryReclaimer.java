package kv.http;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// A thread that cuts connections while the memory for unfinished requests and unread answers is nearly full, so that who comes next finds
/// some. It does not ask who came last, but who wastes most:
///
/// 1. A connection wastes what it holds × the time for which its client has left it there: since it last took something of an unread
///    answer, or since the first byte of a request that it has not finished. Who wastes most is cut first.
/// 2. Who has taken some of its answer, or begun its request, within [#WASTED_MILLIS_MIN] wastes nothing, nor does one whose request is
///    being served: that is our own time.
/// 3. Who holds less than half of what the open connections hold in the mean is never cut.
/// 4. Where all memory is held by those, nobody is cut; requests are refused with 503 when it is full, and of the answers the one that
///    finds no room.
final class MemoryReclaimer implements AutoCloseable {
    /// A client that reads is slower than that only when it, or the network, is stuck.
    static final int WASTED_MILLIS_MIN = 100;

    private static final Logger log = LoggerFactory.getLogger(MemoryReclaimer.class);
    private static final int PAUSE_MILLIS = 5;

    private final MemoryBudget budget;
    private final Iterable<? extends Holder> holders;
    private final AtomicLong cut = new AtomicLong();
    private final Thread thread = Thread.ofPlatform().daemon().name("memory-reclaimer").unstarted(this::run);

    /// A connection, as far as memory goes.
    interface Holder {
        long bytesHeld();

        /// Byte-milliseconds by rule 1, 0 by rule 2. May be called by any thread, and say what was true a moment ago.
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
                budget.awaitNearlyFull();
                relieve(MonotonicClock.millis());
                Thread.sleep(PAUSE_MILLIS);
            }
        } catch (InterruptedException e) {
            log.debug("ended");
        }
    }

    /// Cuts as many as it takes, those that waste most first.
    void relieve(long nowMillis) {
        int count = 0;
        List<Candidate> candidates = new ArrayList<>();
        for (Holder holder : holders) {
            count++;
            long wasted = holder.wasted(nowMillis);
            if (wasted > 0) {
                candidates.add(new Candidate(holder, wasted));
            }
        }
        long halfOfMean = budget.bytesTaken() / Math.max(1, count) / 2;
        candidates.removeIf(candidate -> candidate.holder().bytesHeld() < halfOfMean);
        candidates.sort(Comparator.comparingLong(Candidate::wasted).reversed());
        for (Candidate candidate : candidates) {
            if (!budget.isNearlyFull()) {
                return;
            }
            if (candidate.holder().cutIfWasteful(nowMillis)) {
                cut.incrementAndGet();
            }
        }
    }

    @Override
    public void close() {
        thread.interrupt();
    }
}
