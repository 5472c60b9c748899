package kv.lsm;

import java.io.IOException;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import kv.lsm.log.WriteAheadLogFormat;
import kv.lsm.memory.Mapped;

/// Puts and deletes: into the log, then into the memtable, one writer at a time; replaces a full memtable by a
/// new one.
///
/// A write and the choice of its memtable happen under one lock, and so does freezing a memtable: no write can
/// go into a memtable that is being flushed.
final class WritePath {
    /// How often a writer that may not wait asks for the lock, for some 0.1 ms: others keep it for a microsecond or
    /// a few, and who waits in line waits for all before.
    private static final int LOCK_TRIES_MAX = 1_000;

    private final StoreOptions options;
    private final Views views;
    private final LogSupply logs;
    private final WriteStall stall;
    private final GroupCommit groupCommitOrNull;
    private final WalSync walSync;
    private final Failure failure;
    private final Counters counters;
    private final Runnable wakeFlusher;
    private final StallReasons stallReasons;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private boolean closed;
    /// True while a writer gets a new memtable, which may take its time, under the lock.
    private volatile boolean rotating;
    /// True when the flusher was told that the active memtable is half full, to get the next log ready.
    private boolean rotationAnnounced;

    /// Why what a stalled writer waits for has failed and is tried again, or null.
    interface StallReasons {
        String reasonOrNull(StallCause cause);
    }

    /// @param wakeFlusher called when a memtable was frozen and when one soon will be
    WritePath(
            StoreOptions options,
            Views views,
            LogSupply logs,
            WalSync walSync,
            Failure failure,
            Counters counters,
            Runnable wakeFlusher,
            StallReasons stallReasons) {
        this.options = options;
        this.views = views;
        this.logs = logs;
        this.walSync = walSync;
        this.failure = failure;
        this.counters = counters;
        this.wakeFlusher = wakeFlusher;
        this.stallReasons = stallReasons;
        stall = new WriteStall(options, counters);
        groupCommitOrNull = options.wal() == WalMode.ALWAYS ? new GroupCommit(walSync, failure) : null;
        failure.whenSet(this::wake); // stalled writers would wait for a flush that never comes
    }

    /// Writes a value, or a tombstone when it is null, but does not wait until it is durable where that is to
    /// be waited for.
    ///
    /// @param mayWait false to get null, and write nothing, where writers have to wait for flush or compaction,
    /// for a new log, or for a writer that waits for one of these or writes much
    PendingWrite begin(byte[] key, byte[] valueOrNull, boolean mayWait) {
        int valueLength = valueOrNull == null ? 0 : valueOrNull.length;
        long recordBytes = WriteAheadLogFormat.recordBytes(key.length, valueLength);
        if (!mayWait && rotating || !slowDown(recordBytes, mayWait)) {
            return null;
        }
        PendingWrite begun = append(key, valueOrNull, recordBytes, mayWait);
        if (begun == null) {
            return null;
        }
        counters.userBytes.add(key.length + (long) valueLength);
        if (options.wal() != WalMode.NONE) {
            counters.walBytes.add(recordBytes);
        }
        return begun;
    }

    private PendingWrite append(byte[] key, byte[] valueOrNull, long recordBytes, boolean mayWait) {
        if (mayWait && logs.isLarge(recordBytes)) {
            try (LogSupply.Large largeOrNull = largeOrNull(recordBytes)) {
                return append(key, valueOrNull, recordBytes, true, largeOrNull);
            }
        }
        return append(key, valueOrNull, recordBytes, mayWait, null);
    }

    private PendingWrite append(
            byte[] key, byte[] valueOrNull, long recordBytes, boolean mayWait, LogSupply.Large largeOrNull) {
        if (!lock(mayWait)) {
            return null;
        }
        try {
            Memtable memtable = memtableFor(recordBytes, mayWait, largeOrNull);
            if (memtable == null) {
                return null;
            }
            return written(memtable, memtable.writer().append(key, valueOrNull));
        } catch (InternalError e) {
            throw logUnreachable(e);
        } finally {
            lock.unlock();
        }
    }

    /// The log of a write that is larger than a memtable; null where something else has to be waited for before.
    private LogSupply.Large largeOrNull(long recordBytes) {
        ReadView view = views.current();
        if (view == null || failure.isSet() || stopCause(view) != null) {
            return null;
        }
        try {
            return logs.makeLarge(recordBytes);
        } catch (IOException e) {
            noLogCouldBeMade(e, false);
            throw WriteStalledException.noRoomFor(recordBytes, e);
        }
    }

    /// Takes the lock; false when it is not to be had soon and the writer may not wait.
    private boolean lock(boolean mayWait) {
        if (mayWait) {
            lock.lock();
            return true;
        }
        for (int tries = 0; tries < LOCK_TRIES_MAX && !rotating; tries++) {
            if (lock.tryLock()) {
                return true;
            }
            Thread.onSpinWait();
        }
        return false;
    }

    /// As [#begin], of several writes that are one; waits where writers have to.
    PendingWrite begin(WriteBatch batch) {
        long bytes = WriteAheadLogFormat.batchBytes(batch.writes());
        requireFitsLog(bytes);
        slowDown(bytes, true);
        PendingWrite begun;
        try (LogSupply.Large largeOrNull = logs.isLarge(bytes) ? largeOrNull(bytes) : null) {
            begun = append(batch, bytes, largeOrNull);
        }
        if (options.wal() != WalMode.NONE) {
            counters.walBytes.add(bytes);
        }
        return begun;
    }

    private PendingWrite append(WriteBatch batch, long bytes, LogSupply.Large largeOrNull) {
        lock.lock();
        try {
            Memtable memtable = memtableFor(bytes, true, largeOrNull);
            return written(memtable, memtable.writer().append(batch.writes()));
        } catch (InternalError e) {
            throw logUnreachable(e);
        } finally {
            lock.unlock();
        }
    }

    /// Tens of millions of short keys take many times their own bytes.
    static void requireFitsLog(long batchBytes) {
        if (batchBytes > WriteAheadLogFormat.BATCH_BYTES_MAX) {
            throw new IllegalArgumentException("batch too long for a write-ahead log: bytes_in_log=" + batchBytes
                    + ", max=" + WriteAheadLogFormat.BATCH_BYTES_MAX);
        }
    }

    /// Under the lock.
    private PendingWrite written(Memtable memtable, long record) {
        if (groupCommitOrNull == null) {
            memtable.index(record);
            Mapped.throwPending();
            return PendingWrite.DONE;
        }
        long end = memtable.writer().end();
        return () -> groupCommitOrNull.await(memtable, end);
    }

    /// @param e what Java makes of a mapped page that the disk could not give
    private InternalError logUnreachable(InternalError e) {
        failure.set("a page of a write-ahead log could not be reached", e);
        failure.check();
        return e;
    }

    /// False when the writer would have to sleep and may not.
    private boolean slowDown(long recordBytes, boolean mayWait) {
        // no need to be counted as a reader: only the view's own fields are looked at, not what it owns
        ReadView view = views.current();
        if (view == null || !stall.isSlow(view)) {
            return true;
        }
        if (mayWait) {
            stall.slowDown(recordBytes);
            return true;
        }
        return stall.isPaid(recordBytes);
    }

    /// The active memtable, with room for the record; null when that is to be waited for and may not be. Under
    /// the lock, which keeps the active memtable in use.
    private Memtable memtableFor(long recordBytes, boolean mayWait, LogSupply.Large largeOrNull) {
        requireOpen();
        Memtable active = views.current().active();
        if (hasRoom(active, recordBytes)) {
            if (!rotationAnnounced && active.bytes() > options.memtableBytes() / 2) {
                rotationAnnounced = true;
                wakeFlusher.run();
            }
            return active;
        }
        if (!mayWait && (stopCause() != null || !logs.isReady(recordBytes))) {
            return null;
        }
        rotateWhenPossible(() -> hasRoom(views.current().active(), recordBytes), recordBytes, largeOrNull);
        return views.current().active();
    }

    /// @param isDone true when nothing is to be done any more: another writer was woken first
    private void rotateWhenPossible(BooleanSupplier isDone, long recordBytes, LogSupply.Large largeOrNull) {
        stall.await(new Rotation(isDone, recordBytes, largeOrNull), changed);
    }

    private final class Rotation implements WriteStall.Question {
        private final BooleanSupplier isDone;
        private final long recordBytes;
        private final LogSupply.Large largeOrNull;
        private boolean rotated;

        Rotation(BooleanSupplier isDone, long recordBytes, LogSupply.Large largeOrNull) {
            this.isDone = isDone;
            this.recordBytes = recordBytes;
            this.largeOrNull = largeOrNull;
        }

        @Override
        public StallCause ask() {
            requireOpen();
            if (rotated || isDone.getAsBoolean()) {
                return null;
            }
            StallCause cause = stopCause();
            if (cause != null && largeOrNull != null) {
                largeOrNull.giveUp(); // what is waited for may need its room
            }
            rotated = cause == null && rotate(recordBytes, largeOrNull);
            return rotated || cause != null ? cause : StallCause.NO_LOG;
        }

        @Override
        public String reasonOrNull(StallCause cause) {
            return stallReasons.reasonOrNull(cause);
        }
    }

    private StallCause stopCause() {
        return stopCause(views.current());
    }

    /// Why writers wait once the active memtable is full, or null.
    StallCause stopCause(ReadView view) {
        return logs.failedOrNull() != null ? StallCause.NO_LOG : stall.stopCause(view);
    }

    private void requireOpen() {
        if (closed) {
            throw new StoreClosedException();
        }
        failure.check();
    }

    private boolean hasRoom(Memtable memtable, long recordBytes) {
        boolean withinBudget = memtable.writer().end() == WriteAheadLogFormat.HEADER_BYTES
                || memtable.bytes() + recordBytes <= options.memtableBytes();
        return withinBudget && memtable.writer().hasRoom(recordBytes);
    }

    /// False when no log could be made; the flusher tries again, and wakes writers then.
    ///
    /// @throws WriteStalledException when a log just for this write could not be made, which nobody tries again
    private boolean rotate(long recordBytes, LogSupply.Large largeOrNull) {
        rotating = true;
        try {
            return rotateSlowly(recordBytes, largeOrNull);
        } finally {
            rotating = false;
        }
    }

    private boolean rotateSlowly(long recordBytes, LogSupply.Large largeOrNull) {
        Memtable full = views.current().active();
        if (groupCommitOrNull != null) {
            groupCommitOrNull.await(full, full.writer().end());
        }
        try {
            views.rotate(logs.memtable(recordBytes, largeOrNull, full.logNumber(), full.writer()::next));
        } catch (IOException e) {
            noLogCouldBeMade(e, closed);
            if (logs.isLarge(recordBytes)) { // others need less, and may find it
                throw WriteStalledException.noRoomFor(recordBytes, e);
            }
            return false;
        }
        rotationAnnounced = false;
        wakeFlusher.run();
        return true;
    }

    /// @throws StoreFailedException when there is no use in trying again
    private void noLogCouldBeMade(IOException e, boolean isLast) {
        if (!Retry.mayPass(e) || isLast) {
            failure.set("a write-ahead log could not be made", e);
            failure.check();
        }
        wakeFlusher.run();
    }

    /// The number of the active log: what was acknowledged before the call is in memtables of this number and of
    /// lower ones.
    long activeLog() {
        lock.lock();
        try {
            requireOpen();
            return views.current().active().logNumber();
        } finally {
            lock.unlock();
        }
    }

    /// Freezes the memtable of the log `number` if it is the active one still and holds anything, and nothing
    /// has to be waited for: a log is not made here, or writers would wait for it.
    ///
    /// @return what has to be waited for, or null: none of its writes is in the active memtable any more
    StallCause tryFreeze(long number) {
        lock.lock();
        try {
            requireOpen();
            if (!isActive(number) || !holdsRecords(views.current().active())) {
                return null;
            }
            if (!logs.isReady(0)) {
                wakeFlusher.run();
                return StallCause.NO_LOG;
            }
            return new Rotation(() -> false, 0, null).ask();
        } finally {
            lock.unlock();
        }
    }

    private boolean isActive(long number) {
        return views.current().active().logNumber() == number;
    }

    private static boolean holdsRecords(Memtable active) {
        return active.writer().end() > WriteAheadLogFormat.HEADER_BYTES;
    }

    /// Wakes writers that wait: a flush or compaction is done, or the store has failed.
    void wake() {
        lock.lock();
        try {
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /// Ends writing: later and waiting writers get [StoreClosedException]. Without a log the active memtable is
    /// frozen, to be flushed; otherwise the logs are made durable. Afterwards no writer touches a memtable.
    void close() {
        lock.lock();
        try {
            closed = true;
            changed.signalAll();
            switch (options.wal()) {
                case NONE -> freezeLast();
                case ALWAYS -> awaitLastGroup();
                case OS, INTERVAL -> {}
            }
            if (options.wal() != WalMode.NONE) {
                syncAll();
            }
        } finally {
            lock.unlock();
            if (groupCommitOrNull != null) {
                groupCommitOrNull.end();
            }
        }
    }

    private void freezeLast() {
        if (!failure.isSet() && !views.current().active().isEmpty()) {
            rotate(0, null);
        }
    }

    private void awaitLastGroup() {
        if (!failure.isSet()) {
            Memtable active = views.current().active();
            groupCommitOrNull.await(active, active.writer().end());
        }
    }

    /// Makes the logs durable, also those of a store that has failed for another reason: what was acknowledged
    /// is in them. Only a store that has not failed says that it was closed in order.
    private void syncAll() {
        if (walSync.hasFailed() || groupCommitOrNull != null && failure.isSet()) {
            return; // each acknowledged write of a group was synced
        }
        ReadView view = views.retain(); // or a flush that ends meanwhile unmaps the log being synced
        try {
            for (Memtable memtable : view.memtablesOldestFirst()) {
                if (!memtable.isReplayed()) {
                    walSync.sync(memtable);
                }
            }
            if (!failure.isSet()) {
                view.active().writer().appendClosed();
                walSync.sync(view.active());
            }
        } catch (IOException | InternalError e) { // the latter is a mapped page that the disk could not give
            failure.set("a write-ahead log could not be synced", e);
        } finally {
            view.release();
        }
    }
}
