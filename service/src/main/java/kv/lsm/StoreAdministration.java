package kv.lsm;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/// Carries out what an operator asks, with the store's own threads. Waits by looking again: that is rare, and a
/// store's threads have nothing more to tell for it.
final class StoreAdministration implements Administration {
    private static final long LOOK_AGAIN_NANOS = 1_000_000;

    private final StoreFiles files;
    private final Views views;
    private final Catalog catalog;
    private final WritePath writePath;
    private final Flusher flusher;
    private final Compactor compactor;
    private final Failure failure;

    StoreAdministration(
            StoreFiles files,
            Views views,
            Catalog catalog,
            WritePath writePath,
            Flusher flusher,
            Compactor compactor,
            Failure failure) {
        this.files = files;
        this.views = views;
        this.catalog = catalog;
        this.writePath = writePath;
        this.flusher = flusher;
        this.compactor = compactor;
        this.failure = failure;
    }

    @Override
    public void flush(BooleanSupplier giveUp) {
        long last = writePath.activeLog();
        freeze(last, giveUp);
        await(() -> isFlushed(last), flusher::failureOrNull, Long.MAX_VALUE, giveUp);
    }

    /// Not as a writer waits: until it can be done, or a writer has done it, or it has no hope for now.
    private void freeze(long last, BooleanSupplier giveUp) {
        AtomicReference<StallCause> cause = new AtomicReference<>();
        await(
                () -> {
                    cause.set(writePath.tryFreeze(last));
                    return cause.get() == null;
                },
                () -> cause.get() == StallCause.LEVEL0_STOP ? compactor.failureOrNull() : flusher.failureOrNull(),
                Long.MAX_VALUE,
                giveUp);
    }

    /// True when no memtable of this number or a lower one holds anything.
    private boolean isFlushed(long last) {
        ReadView view = view();
        return view.frozenCount() == 0 || view.oldestFrozen().logNumber() > last;
    }

    @Override
    public void compact(BooleanSupplier giveUp) {
        flush(giveUp);
        long request = compactor.requestFull();
        try {
            await(
                    () -> compactor.hasDoneFull(request),
                    () -> compactor.fullFailureOrNull(request),
                    Long.MAX_VALUE,
                    giveUp);
        } catch (AttemptFailedException e) { // the operator will ask again, or not
            compactor.giveUpFull(request, e.getMessage());
            throw e;
        }
    }

    @Override
    public void checkpoint(Path directory, BooleanSupplier giveUp) {
        Checkpoint checkpoint = new Checkpoint(files, directory);
        try {
            checkpoint.create();
            try {
                checkpoint.begin();
                flush(giveUp);
                checkpoint.finish(catalog.link(checkpoint));
            } catch (IOException | RuntimeException e) {
                checkpoint.remove(e);
                throw e;
            }
        } catch (IOException e) {
            throw new StoreException("the checkpoint could not be written: directory=" + directory, e);
        }
    }

    @Override
    public boolean awaitIdle(Duration limit, BooleanSupplier giveUp) {
        boolean idle = await(this::isIdle, this::failureOrNull, limit.toNanos(), giveUp);
        failure.check(); // a store that failed where nothing was frozen has nothing left to do either
        return idle;
    }

    /// The flusher wakes the compactor before it rests, and the compactor wakes no flusher: asked in this
    /// order, both at rest is rest.
    private boolean isIdle() {
        return flusher.isResting() && view().frozenCount() == 0 && compactor.isResting();
    }

    private String failureOrNull() {
        String failedFlush = flusher.failureOrNull();
        return failedFlush != null ? failedFlush : compactor.failureOrNull();
    }

    /// @param failedAttempt why the work that is waited for has failed and will be tried again, or null
    private boolean await(
            BooleanSupplier condition, Supplier<String> failedAttempt, long limitNanos, BooleanSupplier giveUp) {
        long start = System.nanoTime();
        while (!condition.getAsBoolean()) {
            view(); // of a store that was closed the condition never comes true
            failure.check();
            String reason = failedAttempt.get();
            if (reason != null) {
                throw new AttemptFailedException(reason);
            }
            if (giveUp.getAsBoolean() || Thread.currentThread().isInterrupted()) {
                throw new StoreClosedException();
            }
            if (System.nanoTime() - start > limitNanos) {
                return false;
            }
            LockSupport.parkNanos(LOOK_AGAIN_NANOS);
        }
        return true;
    }

    /// Its own fields only are looked at, not what it owns.
    private ReadView view() {
        ReadView view = views.current();
        if (view == null) {
            throw new StoreClosedException();
        }
        return view;
    }
}
