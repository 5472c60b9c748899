package kv.lsm;

import java.io.IOException;
import java.time.Duration;

/// Flush or compaction is too far behind to take this write within the limit, or there is no room for a log as
/// large as the write alone needs. The write was not applied; a later try may succeed.
public final class WriteStalledException extends StoreException {
    private final StallCause cause;

    /// @param reasonOrNull why what is waited for has failed and is tried again
    public WriteStalledException(StallCause cause, Duration waited, String reasonOrNull) {
        this(
                cause,
                "write stalled over its limit: cause=" + cause.label() + ", waited_ms=" + waited.toMillis()
                        + (reasonOrNull == null ? "" : ", reason=" + reasonOrNull));
    }

    private WriteStalledException(StallCause cause, String message) {
        super(message);
        this.cause = cause;
    }

    /// Of a write that is larger than a memtable.
    static WriteStalledException noRoomFor(long recordBytes, IOException reason) {
        return new WriteStalledException(
                StallCause.NO_LOG,
                "no log could be made for a write larger than a memtable: bytes=" + recordBytes + ", reason="
                        + reasonOf(reason));
    }

    public StallCause stallCause() {
        return cause;
    }
}
