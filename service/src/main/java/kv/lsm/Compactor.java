package kv.lsm;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/// The thread that keeps the version as the [CompactionPolicy] wants it. A compaction that fails for a reason
/// that may pass gives its room back and is tried again ([Retry]). One that the disk may have no room for is not
/// begun: what it took meanwhile, logs and flushes would lack.
final class Compactor {
    private static final System.Logger LOGGER = System.getLogger(Compactor.class.getName());

    private final StoreFiles files;
    private final CompactionPolicy policy;
    private final Views views;
    private final Catalog catalog;
    private final Failure failure;
    private final Counters counters;
    private final Runnable versionChanged;
    private final TimeSlices slices = new TimeSlices(this::isBehind);
    private final CompactionRate rate;
    private final Thread thread;
    private final WorkSignal work = new WorkSignal(true);
    private final Retry retry;
    /// Of the tables that are being merged.
    private long inputBytes;
    /// Requests to merge everything, counted; up to which of them all are done; and up to which all were given up.
    private final AtomicLong fullRequested = new AtomicLong();
    private volatile long fullDone;
    private final AtomicLong fullGivenUp = new AtomicLong();
    private volatile String fullFailure;
    /// The request that the attempt under way carries out, or 0.
    private long fullUnderWay;

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
        retry = new Retry("a compaction", files);
        rate = new CompactionRate(files.options().compactionBytesPerSecond(), this::isBehind);
        thread = Threads.start("kv-compact", this::run);
    }

    private void run() {
        while (work.await() && !work.isEnding()) {
            try {
                boolean isDone = false;
                while (!isDone && !isGivingUp()) {
                    isDone = step();
                }
            } catch (IOException | RuntimeException | Error e) { // writers would wait for ever
                failure.set("a compaction failed", e);
                versionChanged.run();
            }
        }
    }

    /// True when nothing is left to do.
    ///
    /// @throws IOException when there is no use in trying again
    private boolean step() throws IOException {
        try {
            boolean hasCompacted = compactOnce();
            if (hasCompacted) {
                versionChanged.run();
            }
            retry.succeeded();
            return !hasCompacted;
        } catch (IOException | StoreException e) {
            if (!Retry.mayPass(e)) {
                throw e;
            }
            hasFailed(e);
        } catch (InternalError e) { // an input is mapped, and the disk could not give a page of it
            hasFailed(files.unreadablePage(e));
        }
        return false;
    }

    private void hasFailed(Exception e) {
        if (fullUnderWay > 0) {
            fullHasFailed(e);
            return;
        }
        retry.failed(e, bytesNeeded());
        retry.await(work);
    }

    /// What the attempt may write, and room for a log and a flush beside it.
    private long bytesNeeded() {
        return inputBytes + 2 * files.options().memtableBytes();
    }

    /// Before the first attempt; when it is time for another one [Retry] says.
    private void requireRoom() throws IOException {
        long usable = files.usableBytes();
        if (retry.failureOrNull() == null && usable < bytesNeeded()) {
            throw new IOException("No space left on device for a compaction, beside a log and a flush: bytes_needed="
                    + bytesNeeded() + ", bytes_usable=" + usable);
        }
    }

    /// An operator asks again; until then what the policy wants goes first, or writers would wait for a merge
    /// that the disk has no room for.
    private void fullHasFailed(Exception e) {
        String failed = "the compaction of all tables failed and was given up: directory=" + files.directory()
                + ", reason=" + StoreException.reasonOf(e);
        Retry.tell(LOGGER, System.Logger.Level.WARNING, failed + Retry.adviceFor(e) + "; ask again", null);
        giveUpFull(fullUnderWay, failed);
    }

    /// Who asked for `request` was told that it failed, or is told now: it is not begun any more.
    void giveUpFull(long request, String failed) {
        fullFailure = failed;
        fullGivenUp.accumulateAndGet(request, Math::max);
    }

    /// Why the last attempt failed, if there was no better one since; else null.
    String failureOrNull() {
        return retry.failureOrNull();
    }

    /// True when level 0 is half way from where it is compacted to where it slows writers down.
    private boolean isBehind() {
        ReadView view = views.current(); // its own fields only
        StoreOptions options = files.options();
        return view == null || view.level0Runs() >= (options.level0Compaction() + options.level0Slowdown()) / 2;
    }

    /// Tells the thread that the version has changed.
    void wake() {
        work.wake();
    }

    /// True while the version is as the policy wants it and nobody has asked for more.
    boolean isResting() {
        return work.isResting();
    }

    /// Asks for all tables to be merged; a number for [#hasDoneFull].
    long requestFull() {
        long request = fullRequested.incrementAndGet();
        work.wake();
        return request;
    }

    boolean hasDoneFull(long request) {
        return fullDone >= request;
    }

    /// Why the merge that `request` asks for was given up, or has to wait, or null.
    String fullFailureOrNull(long request) {
        return fullGivenUp.get() >= request && fullDone < request ? fullFailure : failureOrNull();
    }

    private boolean isGivingUp() {
        return work.isEnding() || failure.isSet();
    }

    /// False when there was nothing to do or the thread is to stop.
    private boolean compactOnce() throws IOException {
        long request = fullRequested.get();
        boolean isFull = request > Math.max(fullDone, fullGivenUp.get());
        fullUnderWay = isFull ? request : 0;
        try (CompactionInputs inputs = choose(isFull)) {
            if (inputs != null && !carryOut(inputs)) {
                return false;
            }
            if (isFull) {
                fullDone = request;
            }
            return isFull || inputs != null;
        }
    }

    /// Null when there is nothing to do. Only this thread removes tables, so the choice stays right while
    /// flushes add newer ones.
    private CompactionInputs choose(boolean isFull) {
        ReadView view = views.retain();
        try {
            return (isFull ? FullCompaction.choose(view.version(), files.options()) : policy.choose(view.version()))
                    .map(choice -> new CompactionInputs(view, choice))
                    .orElse(null);
        } finally {
            view.release(); // a compaction takes long: it keeps the tables that it merges, and no memtable
        }
    }

    private boolean carryOut(CompactionInputs inputs) throws IOException {
        CompactionChoice choice = inputs.choice();
        boolean dropsTombstones = choice.cause().equals(FullCompaction.CAUSE)
                && choice.tables().stream().anyMatch(table -> table.tombstones() > 0);
        if (choice.isMove() && !dropsTombstones) {
            retry.untilDone(
                    work, succeeded -> catalog.moved(choice.tables().getFirst(), choice.outputLevel(), succeeded));
            return true;
        }
        inputBytes = choice.tables().stream().mapToLong(TableMetadata::bytes).sum();
        requireRoom();
        StoreEvents.Compaction event = new StoreEvents.Compaction();
        event.begin();
        long start = System.nanoTime();
        List<NewTable> outputs = new CompactionJob(files, inputs, slices, rate).run(this::isGivingUp);
        if (outputs == null) {
            return false;
        }
        inputs.willBeDeleted();
        try {
            retry.untilDone(work, succeeded -> catalog.compacted(choice.tables(), outputs, succeeded));
        } finally {
            outputs.forEach(output -> output.table().release());
        }
        long bytesWritten =
                outputs.stream().mapToLong(output -> output.metadata().bytes()).sum();
        counters.compactions.increment();
        counters.compactionBytesRead.add(inputBytes);
        counters.compactionBytesWritten.add(bytesWritten);
        counters.compactionNanos.add(System.nanoTime() - start);
        event.fromLevel = choice.inputs().getFirst().level();
        event.toLevel = choice.outputLevel();
        event.inputTables = choice.tables().size();
        event.bytesRead = inputBytes;
        event.bytesWritten = bytesWritten;
        event.cause = choice.cause();
        event.commit();
        return true;
    }

    /// Ends the thread; a compaction under way is given up.
    void stop() {
        work.end();
        Threads.join(thread);
    }
}
