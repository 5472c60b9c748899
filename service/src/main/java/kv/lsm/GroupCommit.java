package kv.lsm;

import java.io.IOException;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/// [WalMode#ALWAYS]: one sync makes the records of all writers durable that wait at that time.
///
/// The first writer that comes becomes the leader: it syncs the log up to its present end, then makes those
/// records visible. Writers that come meanwhile append to the log and wait; one of them leads the next group.
/// Records become visible only here, so the leader is the one thread that indexes.
final class GroupCommit {
    private final WalSync walSync;
    private final Failure failure;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition groupDone = lock.newCondition();
    private boolean leading;
    private boolean ended;

    GroupCommit(WalSync walSync, Failure failure) {
        this.walSync = walSync;
        this.failure = failure;
    }

    /// Returns when the log of `memtable` is durable and visible up to `end`.
    ///
    /// @throws StoreFailedException when it cannot be made durable
    void await(Memtable memtable, long end) {
        lock.lock();
        try {
            if (memtable.indexedEnd() < end) {
                awaitSync(memtable, end);
            }
        } finally {
            lock.unlock();
        }
    }

    private void awaitSync(Memtable memtable, long end) {
        Waits waits = Waits.keptOrNull();
        long start = waits == null ? 0 : System.nanoTime();
        try {
            while (memtable.indexedEnd() < end) {
                failure.check();
                if (ended) {
                    throw new StoreClosedException();
                }
                if (leading) {
                    groupDone.awaitUninterruptibly();
                } else {
                    lead(memtable);
                }
            }
        } finally {
            if (waits != null) {
                waits.synced(System.nanoTime() - start);
            }
        }
    }

    /// Returns when nobody leads a group, and nobody will: afterwards the memtables may be freed. Who still
    /// waits is told that the store has failed or was closed.
    void end() {
        lock.lock();
        try {
            ended = true;
            while (leading) {
                groupDone.awaitUninterruptibly();
            }
            groupDone.signalAll();
        } finally {
            lock.unlock();
        }
    }

    private void lead(Memtable memtable) {
        leading = true;
        lock.unlock();
        try {
            memtable.indexUpTo(walSync.sync(memtable));
        } catch (IOException | RuntimeException | Error e) {
            failure.set("a write-ahead log could not be synced", e);
        } finally {
            lock.lock();
            leading = false;
            groupDone.signalAll();
        }
    }
}
