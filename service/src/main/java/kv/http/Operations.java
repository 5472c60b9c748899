package kv.http;

/// What those who run the service ask of it, apart from how it serves.
///
/// @param admin true when `/v0/admin/…` is answered
/// @param drainMillis longest time that a stop waits for requests under way
/// @param batchBytesMax longest body of a request of many keys, and most bytes of values in the answer to one
/// @param slowRequestMillis shortest time of a request that the log tells of; 0 for none
public record Operations(boolean admin, int drainMillis, int batchBytesMax, int slowRequestMillis) {
    public Operations(boolean admin, int drainMillis) {
        this(admin, drainMillis, DEFAULT_BATCH_BYTES_MAX);
    }

    public Operations(boolean admin, int drainMillis, int batchBytesMax) {
        this(admin, drainMillis, batchBytesMax, 0);
    }

    public Operations withSlowRequestMillis(int newSlowRequestMillis) {
        return new Operations(admin, drainMillis, batchBytesMax, newSlowRequestMillis);
    }

    private static final int DEFAULT_BATCH_BYTES_MAX = 4 << 20;

    public static final Operations DEFAULTS = new Operations(false, 10_000);
}
