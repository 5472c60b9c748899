package kv.linearizability;

/// One call on one key as its client saw it. Times are of one clock, in nanoseconds.
///
/// @param write true for a put or delete, false for a get
/// @param value what was written or read; null for a delete, or when nothing was found
/// @param callNanos just before the request was sent
/// @param returnNanos just after the answer was read; [#NEVER] when no answer came: the write may have happened
/// at any time
///     after the call, or not at all
public record Operation(boolean write, String value, long callNanos, long returnNanos) {
    public static final long NEVER = Long.MAX_VALUE;

    public static Operation write(String value, long callNanos, long returnNanos) {
        return new Operation(true, value, callNanos, returnNanos);
    }

    public static Operation read(String value, long callNanos, long returnNanos) {
        return new Operation(false, value, callNanos, returnNanos);
    }
}
