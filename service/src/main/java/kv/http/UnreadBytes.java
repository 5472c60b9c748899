package kv.http;

/// What a connection has received and not yet used: a part of a request, or requests behind the one being
/// served. Guarded by its connection.
final class UnreadBytes {
    private final MemoryBudget.Share memory;
    private byte[] bytes = Request.NO_BYTES;
    private int length;

    UnreadBytes(MemoryBudget.Account account) {
        memory = account.share();
    }

    int length() {
        return length;
    }

    /// Puts them at the start of `buffer`; they stay here too.
    void copyTo(byte[] buffer) {
        System.arraycopy(bytes, 0, buffer, 0, length);
    }

    /// Takes them out. The memory stays taken until [#drop] or the next [#set].
    byte[] take() {
        byte[] taken = bytes;
        bytes = Request.NO_BYTES;
        length = 0;
        return taken;
    }

    /// Replaces them by `[from, to)` of `b`; false when the memory for that is not there.
    boolean set(byte[] b, int from, int to) {
        if (from == to) {
            drop();
            return true;
        }
        if (!memory.growTo(to - from)) {
            return false;
        }
        if (bytes.length < to - from) {
            bytes = new byte[to - from];
        }
        System.arraycopy(b, from, bytes, 0, to - from);
        length = to - from;
        return true;
    }

    void drop() {
        bytes = Request.NO_BYTES;
        length = 0;
        memory.giveBack();
    }
}
