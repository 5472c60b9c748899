package kv.lsm;

import java.io.IOException;
import java.util.List;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Mapped;

/// The thread that writes frozen memtables to tables of level 0, the oldest first, and gets the next log ready
/// before. What fails for a reason that may pass is tried again ([Retry]): the memtable and its log stay.
final class Flusher {
    private final StoreFiles files;
    private final LogSupply logs;
    private final Views views;
    private final Catalog catalog;
    private final Failure failure;
    private final Counters counters;
    private final Runnable flushed;
    private final TimeSlices slices = new TimeSlices(this::isBehind);
    private final Thread thread;
    private final WorkSignal work = new WorkSignal(false);
    private final Retry retry;
    private volatile boolean drain;

    /// @param flushed called after each flush and when writing has failed
    Flusher(
            StoreFiles files,
            LogSupply logs,
            Views views,
            Catalog catalog,
            Failure failure,
            Counters counters,
            Runnable flushed) {
        this.files = files;
        this.logs = logs;
        this.views = views;
        this.catalog = catalog;
        this.failure = failure;
        this.counters = counters;
        this.flushed = flushed;
        retry = new Retry("a flush", files);
        thread = Threads.start("kv-flush", this::run);
    }

    private void run() {
        while (work.await() && !isGivingUp()) {
            try {
                boolean isDone = false;
                while (!isDone && !isGivingUp() && !failure.isSet()) {
                    isDone = step();
                }
            } catch (IOException | RuntimeException | Error e) { // writers would wait for ever
                failure.set("a flush failed", e);
                flushed.run();
            }
        }
    }

    /// Gets a log ready and flushes a memtable; true when nothing is left to do.
    ///
    /// @throws IOException when there is no use in trying again
    private boolean step() throws IOException {
        try {
            boolean hasFlushed = prepareLog();
            hasFlushed |= flushOldest();
            retry.succeeded();
            return !hasFlushed;
        } catch (IOException | StoreException e) {
            if (!Retry.mayPass(e) || drain) { // a memtable without a log: its writes would be gone
                throw e;
            }
            tryAgainLater(e);
        } catch (InternalError e) { // a log is mapped, and the disk could not give a page of it
            if (drain) {
                throw files.unreadablePage(e);
            }
            tryAgainLater(files.unreadablePage(e));
        }
        return false;
    }

    private void tryAgainLater(Exception e) {
        retry.failed(e, bytesNeeded());
        retry.await(work);
    }

    /// Before a flush, or writers would wait for it. Where the disk is full the flush may make the room: true
    /// when it was carried out for that.
    private boolean prepareLog() throws IOException {
        try {
            if (logs.prepare(slices, retry::succeeded)) {
                flushed.run();
            }
            return false;
        } catch (IOException e) {
            if (!Retry.mayPass(e) || !flushOldest()) {
                throw e;
            }
            return true;
        }
    }

    private long bytesNeeded() {
        LogSupply.Failed log = logs.failedOrNull();
        return log != null ? log.bytes() : files.options().memtableBytes();
    }

    /// Why the last attempt failed, if there was no better one since; else null.
    String failureOrNull() {
        return retry.failureOrNull();
    }

    private boolean isGivingUp() {
        return work.isEnding() && !drain;
    }

    /// True when a writer waits for a log, or writers will wait once the active memtable is full.
    private boolean isBehind() {
        ReadView view = views.current(); // its own fields only
        return logs.isWanted()
                || view == null
                || view.frozenCount() >= files.options().frozenMemtablesMax();
    }

    /// Tells the thread that a memtable was frozen, or soon will be.
    void wake() {
        work.wake();
    }

    /// True while there is nothing to flush or to get ready.
    boolean isResting() {
        return work.isResting();
    }

    /// False when no memtable is frozen.
    private boolean flushOldest() throws IOException {
        Memtable memtable = retainOldestFrozen();
        if (memtable == null) {
            return false;
        }
        try {
            flush(memtable);
            flushed.run();
            return true;
        } finally {
            memtable.release();
        }
    }

    /// Without its view, which would keep tables that are replaced during the flush.
    private Memtable retainOldestFrozen() {
        ReadView view = views.retain();
        try {
            Memtable memtable = view.oldestFrozen();
            if (memtable != null) {
                memtable.retain();
            }
            return memtable;
        } finally {
            view.release();
        }
    }

    private void flush(Memtable memtable) throws IOException {
        StoreEvents.Flush event = new StoreEvents.Flush();
        event.begin();
        long start = System.nanoTime();
        List<NewTable> tables = write(memtable);
        try {
            retry.untilDone(work, succeeded -> catalog.flushed(memtable, tables, succeeded));
        } finally {
            tables.forEach(table -> table.table().release());
        }
        long bytes =
                tables.stream().mapToLong(table -> table.metadata().bytes()).sum();
        counters.flushes.increment();
        counters.flushBytes.add(bytes);
        counters.flushNanos.add(System.nanoTime() - start);
        event.memtableBytes = memtable.bytes();
        event.bytesWritten = bytes;
        event.entries =
                tables.stream().mapToLong(table -> table.metadata().entries()).sum();
        event.commit();
    }

    private List<NewTable> write(Memtable memtable) throws IOException {
        try (EntryIterator entries = memtable.iterator(null, Long.MAX_VALUE);
                RunWriter writer = RunWriter.ofFlush(files, files.newNumber(), slices)) {
            while (entries.next()) {
                writer.add(entries);
            }
            Mapped.throwPending();
            return writer.finish();
        }
    }

    /// Ends the thread.
    ///
    /// @param drain true to flush all frozen memtables first; false to end after the flush under way
    void stop(boolean drain) {
        this.drain = drain;
        if (drain) {
            work.wake();
        }
        work.end();
        Threads.join(thread);
    }
}
