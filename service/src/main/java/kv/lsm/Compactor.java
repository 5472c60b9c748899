package kv.lsm;

import java.io.IOException;
import java.util.List;
import java.util.Optional;

/// The thread that keeps the version as the [CompactionPolicy] wants it.
final class Compactor {
    private final StoreFiles files;
    private final CompactionPolicy policy;
    private final Views views;
    private final Catalog catalog;
    private final Failure failure;
    private final Counters counters;
    private final Runnable versionChanged;
    private final Thread thread;
    private boolean work = true;
    private volatile boolean stopping;

    /// @param versionChanged called after each compaction and when writing has failed
    Compactor(
            StoreFiles files,
            Views views,
            Catalog catalog,
            Failure failure,
            Counters counters,
            Runnable versionChanged) {
        this.files = files;
        this.views = views;
        this.catalog = catalog;
        this.failure = failure;
        this.counters = counters;
        this.versionChanged = versionChanged;
        policy = CompactionPolicy.of(files.options());
        thread = Threads.start("kv-compact", this::run);
    }

    private void run() {
        while (waitForWork()) {
            try {
                while (!stopping && !failure.isSet() && compactOnce()) {
                    versionChanged.run();
                }
            } catch (IOException | RuntimeException | Error e) { // writers would wait for ever
                failure.set("a compaction failed", e);
                versionChanged.run();
            }
        }
    }

    private synchronized boolean waitForWork() {
        while (!work && !stopping) {
            try {
                wait();
            } catch (InterruptedException e) {
                throw new AssertionError("nobody interrupts the store's threads", e);
            }
        }
        work = false;
        return !stopping;
    }

    /// Tells the thread that the version has changed.
    synchronized void wake() {
        work = true;
        notifyAll();
    }

    /// False when there was nothing to do or the thread is to stop.
    private boolean compactOnce() throws IOException {
        ReadView view = views.retain();
        try {
            // only this thread removes tables, so the choice stays right while flushes add newer ones
            Optional<CompactionChoice> choice = policy.choose(view.version());
            return choice.isPresent() && carryOut(choice.get(), view);
        } finally {
            view.release();
        }
    }

    private boolean carryOut(CompactionChoice choice, ReadView view) throws IOException {
        if (choice.isMove()) {
            catalog.moved(choice.tables().getFirst(), choice.outputLevel());
            return true;
        }
        StoreEvents.Compaction event = new StoreEvents.Compaction();
        event.begin();
        long start = System.nanoTime();
        List<NewTable> outputs = new CompactionJob(files, view, choice).run(() -> stopping);
        if (outputs == null) {
            return false;
        }
        try {
            catalog.compacted(choice.tables(), outputs);
        } finally {
            outputs.forEach(output -> output.table().release());
        }
        long bytesRead = choice.tables().stream().mapToLong(TableMetadata::bytes).sum();
        long bytesWritten = outputs.stream().mapToLong(output -> output.metadata().bytes()).sum();
        counters.compactions.increment();
        counters.compactionBytesRead.add(bytesRead);
        counters.compactionBytesWritten.add(bytesWritten);
        counters.compactionNanos.add(System.nanoTime() - start);
        event.fromLevel = choice.inputs().getFirst().level();
        event.toLevel = choice.outputLevel();
        event.inputTables = choice.tables().size();
        event.bytesRead = bytesRead;
        event.bytesWritten = bytesWritten;
        event.cause = choice.cause();
        event.commit();
        return true;
    }

    /// Ends the thread; a compaction under way is given up.
    void stop() {
        stopping = true;
        wake();
        Threads.join(thread);
    }
}
