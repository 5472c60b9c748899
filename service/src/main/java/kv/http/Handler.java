package kv.http;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;

/// Which thread runs a request.
///
/// | kind     | runs on                                     | a slow request holds up         |
/// |----------|---------------------------------------------|---------------------------------|
/// | selector | the selector that holds the connection      | that selector's connections     |
/// | workers  | a fixed pool behind a bounded queue         | one worker                      |
/// | virtual  | a virtual thread each, so many at one time  | its connection                  |
sealed interface Handler {
    /// Sixteen readers took 40 000 GETs a second from a disk that one took 18 000 from: the selector's table in
    /// `docs/results/2026-11-24-history-of-benchmarks.md`.
    int COLD_READS_AT_ONCE = 16;

    int IDLE_SECONDS = 30;

    /// True when requests run on the selector thread itself.
    default boolean isInline() {
        return false;
    }

    /// Runs `task` on another thread, or returns false when as many wait as may.
    boolean tryRun(Runnable task);

    /// As the other, of a task that others may overtake.
    ///
    /// @param isInDoubt asked when the task's turn comes: true when it is likely that nobody needs it
    default boolean tryRun(Runnable task, BooleanSupplier isInDoubt) {
        return tryRun(task);
    }

    /// Tasks that were accepted and have not begun.
    int waiting();

    /// Accepts no more tasks; those that were accepted go on.
    void end();

    /// After [#end]: waits for the accepted tasks until `deadlineMillis` of [MonotonicClock], and interrupts those
    /// that have not ended then.
    void awaitEnd(long deadlineMillis);

    /// Ends several at once, which wait for their tasks together.
    static void endAll(List<Handler> handlers, long deadlineMillis) {
        handlers.forEach(Handler::end);
        handlers.forEach(handler -> handler.awaitEnd(deadlineMillis));
    }

    static Handler of(HttpOptions options) {
        return switch (options.handler()) {
            case SELECTOR -> new Selector();
            case WORKERS -> new Workers("worker-", options.workers(), options.queue());
            case VIRTUAL -> new Virtual(options.workers(), options.queue());
        };
    }

    /// For `/metrics`, whatever runs the other requests: one thread, 64 that wait.
    static Handler ofMetrics() {
        return new Workers("metrics-", 1, 64);
    }

    /// For reads of many keys, which take long. Each holds its answer in memory, so they are few.
    static Handler ofManyGets() {
        return new Workers("many-gets-", 2, 256);
    }

    /// For writes of many keys, which take long. They may wait for flush and compaction, for ever if that is
    /// asked for, so they share their threads with nobody. Each holds its body in memory, so they are few.
    static Handler ofBatches() {
        return new Workers("batch-", 2, 256);
    }

    /// For `/v0/admin/…`, which waits for flush and compaction: so that two who wait do not keep out a third.
    static Handler ofAdmin() {
        return new Workers("admin-", 4, 16);
    }

    /// For writes that wait until flush or compaction have caught up, or for the disk where no round does: a virtual
    /// thread each. They share nothing with the threads that run requests, which would all be waiting soon. A
    /// connection counts twice while the write behind the one that was answered is handed over.
    static Handler ofStalledWrites(int connectionsMax) {
        return new Virtual(connectionsMax, connectionsMax);
    }

    /// For GETs that wait for the disk, where the store is larger than memory: as many as make a disk busy. No
    /// thread exists before the first of them, and none long after the last. All connections may wait.
    static Handler ofColdReads(int connectionsMax) {
        return new Readers(new Workers("read-", COLD_READS_AT_ONCE, connectionsMax, IDLE_SECONDS));
    }

    /// No thread of its own: the shortest way, and the best one while the store answers from memory.
    record Selector() implements Handler {
        @Override
        public boolean isInline() {
            return true;
        }

        @Override
        public boolean tryRun(Runnable task) {
            return false;
        }

        @Override
        public int waiting() {
            return 0;
        }

        @Override
        public void end() {}

        @Override
        public void awaitEnd(long deadlineMillis) {}
    }

    /// A fixed pool of platform threads. One-nio's own `asyncExecute` has no queue to speak of: it would run as
    /// many threads as there are requests, or refuse at once.
    final class Workers implements Handler {
        private final ThreadPoolExecutor pool;

        Workers(String name, int threads, int queue) {
            this(name, threads, queue, 0);
            pool.prestartAllCoreThreads();
        }

        /// @param idleSeconds after which a thread that has nothing to do ends; 0 for never
        Workers(String name, int threads, int queue, int idleSeconds) {
            AtomicInteger number = new AtomicInteger();
            ThreadFactory named = task -> new Thread(task, name + number.getAndIncrement());
            pool = new ThreadPoolExecutor(
                    threads, threads, idleSeconds, TimeUnit.SECONDS, new LinkedBlockingQueue<>(queue), named);
            pool.allowCoreThreadTimeOut(idleSeconds > 0);
        }

        @Override
        public boolean tryRun(Runnable task) {
            try {
                pool.execute(task);
                return true;
            } catch (RejectedExecutionException e) {
                return false;
            }
        }

        @Override
        public int waiting() {
            return pool.getQueue().size();
        }

        @Override
        public void end() {
            pool.shutdown();
        }

        @Override
        public void awaitEnd(long deadlineMillis) {
            awaitOrInterrupt(pool, deadlineMillis);
        }
    }

    /// Workers who put off what is in doubt until nothing else waits: where clients give up and ask again, what
    /// they gave up would else be read first, and the others wait for that.
    final class Readers implements Handler {
        private final Workers workers;
        private final Queue<Runnable> putOff = new ConcurrentLinkedQueue<>();

        Readers(Workers workers) {
            this.workers = workers;
        }

        @Override
        public boolean tryRun(Runnable task) {
            return tryRun(task, () -> false);
        }

        @Override
        public boolean tryRun(Runnable task, BooleanSupplier isInDoubt) {
            return workers.tryRun(() -> runOrPutOff(task, isInDoubt));
        }

        private void runOrPutOff(Runnable task, BooleanSupplier isInDoubt) {
            if (workers.waiting() > 0 && isInDoubt.getAsBoolean()) {
                putOff.add(task);
            } else {
                task.run();
            }
            // whoever finds the queue empty, so that nothing is left behind
            for (Runnable next; workers.waiting() == 0 && (next = putOff.poll()) != null; ) {
                next.run();
            }
        }

        @Override
        public int waiting() {
            return workers.waiting() + putOff.size();
        }

        @Override
        public void end() {
            workers.end();
        }

        @Override
        public void awaitEnd(long deadlineMillis) {
            workers.awaitEnd(deadlineMillis);
        }
    }

    /// A virtual thread for each request; `atOnce` of them run, `queue` more wait for a permit.
    final class Virtual implements Handler {
        private final ExecutorService threads = Executors.newThreadPerTaskExecutor(
                Thread.ofVirtual().name("request-", 0).factory());
        private final Semaphore running;
        private final AtomicInteger accepted = new AtomicInteger();
        private final int atOnce;
        private final int acceptedMax;

        Virtual(int atOnce, int queue) {
            this.atOnce = atOnce;
            this.acceptedMax = atOnce + queue;
            this.running = new Semaphore(atOnce);
        }

        @Override
        public boolean tryRun(Runnable task) {
            if (accepted.incrementAndGet() > acceptedMax) {
                accepted.decrementAndGet();
                return false;
            }
            boolean started = false;
            try {
                threads.execute(() -> {
                    running.acquireUninterruptibly();
                    try {
                        task.run();
                    } finally {
                        accepted.decrementAndGet(); // first: who waits for the permit may hand over another task
                        running.release();
                    }
                });
                started = true;
                return true;
            } catch (RejectedExecutionException e) {
                return false;
            } finally {
                if (!started) {
                    accepted.decrementAndGet();
                }
            }
        }

        @Override
        public int waiting() {
            return Math.max(0, accepted.get() - atOnce);
        }

        @Override
        public void end() {
            threads.shutdown();
        }

        @Override
        public void awaitEnd(long deadlineMillis) {
            awaitOrInterrupt(threads, deadlineMillis);
        }
    }

    private static void awaitOrInterrupt(ExecutorService threads, long deadlineMillis) {
        try {
            if (!threads.awaitTermination(deadlineMillis - MonotonicClock.millis(), TimeUnit.MILLISECONDS)) {
                threads.shutdownNow();
            }
        } catch (InterruptedException e) {
            threads.shutdownNow();
            Thread.currentThread().interrupt();
        }
    }
}
