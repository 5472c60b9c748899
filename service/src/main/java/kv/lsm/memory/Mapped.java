package kv.lsm.memory;

/// What whoever reads a mapped file has to heed.
///
/// A page that the disk cannot give does not stop compiled code at the load that touches it. The load is passed
/// over, its result is whatever the register held, and InternalError comes at the next safepoint poll. So
///
/// 1. a number from a mapped file becomes a length or an address only after [#requireWithin], however often its
///    block was checked before: the page may be gone since;
/// 2. before an answer that rests on such reads leaves, [#throwPending] lets the error come.
public final class Mapped {
    /// Not final: a loop with a step that the compiler knows is counted, and keeps no poll.
    private static int step = 1;

    private Mapped() {}

    /// @param address of the end of something, of which it is not known whether its length was read
    /// @param begin where it begins at the earliest
    /// @param end where it ends at the latest
    /// @throws InternalError when it ends elsewhere, which that of a block or record whose checksum matched once
    /// can do only where a page of it could not be read
    public static void requireWithin(long address, long begin, long end) {
        if (Long.compareUnsigned(address - begin, end - begin) > 0) {
            throw unreadable();
        }
    }

    /// What [#requireWithin] throws.
    public static InternalError unreadable() {
        throwPending();
        return new InternalError("a page of a mapped file could not be read");
    }

    /// Throws the InternalError of a mapped page that was read before and could not be, if there is one: the one
    /// turn of this loop ends with a safepoint poll. Takes some 0.5 ns.
    public static void throwPending() {
        for (int i = 0; i != 1; i += step) {}
    }
}
