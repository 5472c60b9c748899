package kv.lsm;

/// The store's own threads.
final class Threads {
    private Threads() {}

    /// Starts a daemon: a store that was not closed must not keep its process alive.
    static Thread start(String name, Runnable work) {
        return Thread.ofPlatform().daemon().name(name).start(work);
    }

    /// Waits for the thread's end, whatever interrupts come; they are kept for the caller.
    static void join(Thread thread) {
        boolean interrupted = false;
        while (true) {
            try {
                thread.join();
                break;
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
