package kv.lsm;

/// How others tell a background thread of the store, which waits here between two pieces of work, that there is
/// something to do or that it is to end. It counts nothing: a thread that is told ten times while it works
/// looks once more.
///
/// ```
///   others                          the thread
///   [#wake]: something came up ───► [#await] returns true: look for all there is to do
///   [#end]:  end when that is done ─► [#await] returns false
/// ```
final class WorkSignal {
    private boolean pending;
    private boolean resting;
    private volatile boolean ending;

    /// @param pending true when the thread is to look for work as soon as it starts
    WorkSignal(boolean pending) {
        this.pending = pending;
    }

    /// Waits for one of the two. False when the thread is to end and nothing came up since the last call.
    synchronized boolean await() {
        while (!pending && !ending) {
            resting = true;
            try {
                wait();
            } catch (InterruptedException e) {
                throw new AssertionError("nobody interrupts the store's threads", e);
            }
        }
        resting = false;
        boolean came = pending;
        pending = false;
        return came;
    }

    /// Waits so long, or until the thread is to end; what comes up meanwhile is handed out later.
    synchronized void pause(long millis) {
        if (ending) {
            return;
        }
        try {
            wait(millis);
        } catch (InterruptedException e) {
            throw new AssertionError("nobody interrupts the store's threads", e);
        }
    }

    /// Something came up.
    synchronized void wake() {
        pending = true;
        notifyAll();
    }

    /// The thread is to end; what came up before is still handed out.
    synchronized void end() {
        ending = true;
        notifyAll();
    }

    /// True while the thread has nothing to do and nothing came up.
    synchronized boolean isResting() {
        return resting && !pending;
    }

    boolean isEnding() {
        return ending;
    }
}
