package kv.cache;

import java.util.concurrent.atomic.AtomicLongArray;

/// Tells whether writes of a key overlapped, so that a cache in front of a store knows what it may keep. Writes
/// are counted when they begin and when they end, by the key's hash in one of [#STRIPES] places; two keys that
/// share a place may seem to overlap when they did not, which costs an entry of the cache.
///
/// ```
/// write:  begin ─► store ─► in the cache's own atomic step on the key: was I alone? keep : remove ─► end
/// load:   before ─► store ─► in the cache's own atomic step on the key: unchanged? keep : leave out
/// ```
///
/// What is kept is right: a write that begins after the question was answered removes or replaces the entry
/// when it ends, because its own step comes after the one that asked. Nobody waits for a store inside that
/// step.
final class WritesUnderWay {
    private static final int STRIPES = 1 << 10;
    private static final long OVERLAPPED = -1;

    private final AtomicLongArray begun = new AtomicLongArray(STRIPES);
    private final AtomicLongArray ended = new AtomicLongArray(STRIPES);

    private static int stripe(int hash) {
        return (hash ^ hash >>> 16) & STRIPES - 1;
    }

    /// A write begins; a ticket for [#wasAlone].
    long begin(int hash) {
        int stripe = stripe(hash);
        long number = begun.incrementAndGet(stripe);
        return ended.get(stripe) == number - 1 ? number : OVERLAPPED;
    }

    /// True when no other write was under way since the ticket was given out.
    boolean wasAlone(int hash, long ticket) {
        return begun.get(stripe(hash)) == ticket;
    }

    /// To be called once for each [#begin].
    void end(int hash) {
        ended.incrementAndGet(stripe(hash));
    }

    /// A ticket for [#isUnchanged], to be taken before the store is read.
    long before(int hash) {
        int stripe = stripe(hash);
        long endedBefore = ended.get(stripe);
        return begun.get(stripe) == endedBefore ? endedBefore : OVERLAPPED;
    }

    /// True when no write was under way when the ticket was taken, and none has begun since.
    boolean isUnchanged(int hash, long ticket) {
        return begun.get(stripe(hash)) == ticket;
    }
}
