package kv.lsm.memory;

import java.util.concurrent.atomic.AtomicInteger;

/// Something in native memory that several owners use, with a count of them: the last one to [#release] frees
/// it. Garbage collection does not help there. Its maker is the first owner. A memtable, a table and a view of
/// the store are such things: a view owns its memtables and tables, and who reads in a view owns that.
public abstract class RefCounted {
    private final AtomicInteger owners = new AtomicInteger(1);

    /// Adds an owner; the caller knows one that will not let go meanwhile.
    public final void retain() {
        int before = owners.getAndIncrement();
        assert before > 0 : "retained after disposal: " + this;
    }

    public final void release() {
        int left = owners.decrementAndGet();
        assert left >= 0 : "released once too often: " + this;
        if (left == 0) {
            dispose();
        }
    }

    /// Native memory and mapped files that are held until the last owner lets go. Bytes.
    public long bytesHeld() {
        return 0;
    }

    /// True when the last owner has let go, or is just doing so.
    public final boolean isDisposed() {
        return owners.get() == 0;
    }

    /// Frees what is shared; called once.
    protected abstract void dispose();
}
