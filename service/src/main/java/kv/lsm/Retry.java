package kv.lsm;

import java.io.IOException;

/// Work of one background thread that failed and is tried again: when, and what the log says of it. A full disk
/// is the reason to expect.
///
/// 1. The first time soon, then after twice as long each time, [#DELAY_NANOS_MAX] at most.
/// 2. While the disk has less room than the work may take, no earlier than after [#NO_ROOM_NANOS]: an attempt
///    would take the last room from the logs. It comes at all because the work may take less, and a quota is
///    not told of.
/// 3. The log has one line for the first failure of several in a row, and one when it went well again.
///
/// Used by its thread, but for [#failureOrNull].
final class Retry {
    /// What is tried.
    interface Attempt {
        void run() throws IOException;
    }

    /// What is tried, if others can see that it is done.
    interface Publication {
        /// @param succeeded to be called before anyone can see it: who then asks why the work failed would hear of
        ///     what is over
        void run(Runnable succeeded) throws IOException;
    }

    private static final System.Logger LOGGER = System.getLogger(Retry.class.getName());
    private static final long DELAY_NANOS_MIN = 10_000_000;
    private static final long DELAY_NANOS_MAX = 10_000_000_000L;
    private static final long NO_ROOM_NANOS = 60_000_000_000L;
    /// How often the disk is asked for its room.
    private static final long LOOK_NANOS = 500_000_000;

    private final String work;
    private final StoreFiles files;
    private long delayNanos;
    private long failedNanos;
    private long bytesNeeded;
    private volatile String failureOrNull;

    /// @param work what is tried, for the log: `a flush`
    Retry(String work, StoreFiles files) {
        this.work = work;
        this.files = files;
    }

    /// True when the error may be gone the next time, and trying again does no harm.
    static boolean mayPass(Exception e) {
        Throwable cause = e instanceof StoreException && !(e instanceof StoreFailedException) ? e.getCause() : e;
        return cause instanceof IOException && !(cause instanceof LostSyncException);
    }

    /// @param bytes what the work may write
    void failed(Exception e, long bytes) {
        if (failureOrNull == null) {
            failureOrNull = work + " failed and is tried again: directory=" + files.directory() + ", reason="
                    + StoreException.reasonOf(e);
            tell(LOGGER, System.Logger.Level.WARNING, failureOrNull + adviceFor(e), null);
            delayNanos = DELAY_NANOS_MIN;
        } else {
            delayNanos = Math.min(2 * delayNanos, DELAY_NANOS_MAX);
        }
        bytesNeeded = bytes;
        failedNanos = System.nanoTime();
    }

    void succeeded() {
        if (failureOrNull != null) {
            failureOrNull = null;
            tell(LOGGER, System.Logger.Level.INFO, work + " went well again: directory=" + files.directory(), null);
        }
    }

    /// What helps, behind a semicolon; nothing where nobody knows.
    static String adviceFor(Exception e) {
        if (e.getCause() instanceof InternalError) {
            return "; kv.Tool verify names the damaged files";
        }
        String reason = String.valueOf(e.getMessage());
        boolean isFull = reason.contains("No space left") || reason.contains("quota");
        return isFull ? "; free the disk: nothing is lost meanwhile" : "";
    }

    /// A line that cannot be written costs the line, not the thread: what kept the work from its files may keep
    /// the log from its own.
    static void tell(System.Logger logger, System.Logger.Level level, String line, Throwable errorOrNull) {
        try {
            logger.log(level, line, errorOrNull);
        } catch (RuntimeException | LinkageError | InternalError e) {
            // nobody could be told of this either
        }
    }

    /// What the log said, until the work has gone well. Any thread may ask.
    String failureOrNull() {
        return failureOrNull;
    }

    /// Waits until it is time to try again, or the thread is to end.
    void await(WorkSignal signal) {
        for (long left; !signal.isEnding() && (left = nanosLeft()) > 0; ) {
            signal.pause(Math.max(1, Math.min(left, LOOK_NANOS) / 1_000_000));
        }
    }

    private long nanosLeft() {
        long passed = System.nanoTime() - failedNanos;
        if (passed < delayNanos) {
            return delayNanos - passed;
        }
        return passed >= NO_ROOM_NANOS || files.usableBytes() >= bytesNeeded ? 0 : NO_ROOM_NANOS - passed;
    }

    /// Does what all else of the thread has to wait for. When the thread is to end it is tried once more.
    ///
    /// @throws IOException when the error will not pass, or the thread is to end
    void untilDone(WorkSignal signal, Publication attempt) throws IOException {
        while (true) {
            try {
                attempt.run(this::succeeded);
                return;
            } catch (IOException e) {
                if (!mayPass(e) || signal.isEnding()) {
                    throw e;
                }
                failed(e, 0);
                await(signal);
            }
        }
    }
}
