package kv.lsm;

import java.time.Duration;

/// Flush or compaction is too far behind to take this write within the limit. The write was not applied; a
/// later try may succeed.
public final class WriteStalledException extends StoreException {
    private final StallCause cause;

    /// @param reasonOrNull why what is waited for has failed and is tried again
    public WriteStalledException(StallCause cause, Duration waited, String reasonOrNull) {
        super("write stalled over its limit: cause=" + cause.label() + ", waited_ms=" + waited.toMillis()
                + (reasonOrNull == null ? "" : ", reason=" + reasonOrNull));
        this.cause = cause;
    }

    public StallCause stallCause() {
        return cause;
    }
}
