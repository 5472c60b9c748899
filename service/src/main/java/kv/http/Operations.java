package kv.http;

/// What those who run the service ask of it, apart from how it serves.
///
/// @param admin       true when `/v0/admin/…` is answered
/// @param drainMillis longest time that a stop waits for requests under way
public record Operations(boolean admin, int drainMillis) {
    public static final Operations DEFAULTS = new Operations(false, 10_000);
}
