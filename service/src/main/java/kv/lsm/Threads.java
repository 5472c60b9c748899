package kv.lsm;

/// The store's own threads.
final class Threads {
    private Threads() {}

    /// Starts a daemon: a store that was not closed must not keep its process alive.
    static Thread start(String name, Runnable work) {
        Thread thread = new OfStore(work, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /// True on a thread that [#start] began.
    static boolean isOfStore() {
        return Thread.currentThread() instanceof OfStore;
    }

    private static final class OfStore extends Thread {
        OfStore(Runnable work, String name) {
            super(work, name);
        }
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
