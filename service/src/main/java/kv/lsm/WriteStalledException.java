package kv.lsm;

import java.io.IOException;
import java.time.Duration;

/// Flush or compaction is too far behind to take this write within the limit, or there is no room for a log as
/// large as the write alone needs. The write was not applied; a later try may succeed.
public final class WriteStalledException extends StoreException {
    private final StallCause cause;
    private final boolean byFailure;

    /// @param reasonOrNull why what is waited for has failed and is tried again
    public WriteStalledException(StallCause cause, Duration waited, String reasonOrNull) {
        this(
                cause,
                reasonOrNull != null,
                "write stalled over its limit: cause=" + cause.label() + ", waited_ms=" + waited.toMillis()
                        + (reasonOrNull == null ? "" : ", reason=" + reasonOrNull));
    }

    private WriteStalledException(StallCause cause, boolean byFailure, String message) {
        super(message);
        this.cause = cause;
        this.byFailure = byFailure;
    }

    /// Of a write that is larger than a memtable.
    static WriteStalledException noRoomFor(long recordBytes, IOException reason) {
        return new WriteStalledException(
                StallCause.NO_LOG,
                true,
                "no log could be made for a write larger than a memtable: bytes=" + recordBytes + ", reason="
                        + reasonOf(reason));
    }

    public StallCause stallCause() {
        return cause;
    }

    /// True when what was waited for has failed and is tried again; else it takes its time.
    public boolean isByFailure() {
        return byFailure;
    }
}
