package kv.http;

/// What a thread may be held up by while it answers a request. What would take longer goes to a thread with more
/// patience.
enum Patience {
    /// Nothing: other connections wait for this thread.
    NONE,
    /// The disk: a few threads do so at a time, and each waits for a moment.
    DISK,
    /// Flush and compaction too, which may take seconds.
    ANY
}
