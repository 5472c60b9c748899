package kv.http;

import java.util.concurrent.atomic.AtomicLong;

/// Bytes that all unfinished requests and unread answers together may hold in the heap. Whoever wants more than
/// is left is refused, so that many slow or waiting clients cannot exhaust the memory. Before that comes to
/// pass, while it is [#isNearlyFull], the [MemoryReclaimer] cuts those connections that keep most of it for
/// longest.
final class MemoryBudget {
    private final long bytesMax;
    private final long bytesNearlyFull;
    private final AtomicLong bytesTaken = new AtomicLong();
    private final Object nearlyFull = new Object();
    private boolean someoneWaits;

    MemoryBudget(long bytesMax) {
        this.bytesMax = bytesMax;
        this.bytesNearlyFull = bytesMax / 4 * 3;
    }

    /// A quarter of the heap; the rest is for memtables' entries, caches and garbage.
    static MemoryBudget ofHeap() {
        return new MemoryBudget(Runtime.getRuntime().maxMemory() / 4);
    }

    /// What is refused never counts, not for a moment either: others that ask meanwhile find what there is.
    private boolean tryTake(long bytes) {
        while (true) {
            long before = bytesTaken.get();
            long after = before + bytes;
            boolean fits = after <= bytesMax;
            if (!fits || bytesTaken.compareAndSet(before, after)) {
                if (after > bytesNearlyFull) {
                    tellWaiting();
                }
                return fits;
            }
        }
    }

    private void tellWaiting() {
        synchronized (nearlyFull) {
            if (someoneWaits) {
                nearlyFull.notifyAll();
            }
        }
    }

    /// Over three quarters are taken.
    boolean isNearlyFull() {
        return bytesTaken.get() > bytesNearlyFull;
    }

    /// Returns when it is nearly full, or after `millisMax`.
    void awaitNearlyFull(long millisMax) throws InterruptedException {
        synchronized (nearlyFull) {
            someoneWaits = true;
            if (!isNearlyFull()) {
                nearlyFull.wait(millisMax);
            }
            someoneWaits = false;
        }
    }

    long bytesTaken() {
        return bytesTaken.get();
    }

    long bytesMax() {
        return bytesMax;
    }

    Account account() {
        return new Account();
    }

    /// What one connection has taken, in shares that are given back one by one.
    final class Account {
        private final AtomicLong held = new AtomicLong();

        long bytesHeld() {
            return held.get();
        }

        /// Of all connections together.
        long bytesMax() {
            return bytesMax;
        }

        Share share() {
            return new Share(this);
        }
    }

    /// What is held for one purpose. Guarded by its holder.
    final class Share {
        private final Account account;
        private long taken;

        private Share(Account account) {
            this.account = account;
        }

        long bytesHeld() {
            return taken;
        }

        /// False when that much is not left; the share then stays as it is. It never shrinks before
        /// [#giveBack].
        boolean growTo(long bytes) {
            if (bytes > taken) {
                if (!tryTake(bytes - taken)) {
                    return false;
                }
                account.held.addAndGet(bytes - taken);
                taken = bytes;
            }
            return true;
        }

        void giveBack() {
            if (taken > 0) {
                bytesTaken.addAndGet(-taken);
                account.held.addAndGet(-taken);
                taken = 0;
            }
        }
    }
}
