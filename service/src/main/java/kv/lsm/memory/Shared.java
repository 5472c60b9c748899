package kv.lsm.memory;

import java.util.concurrent.atomic.AtomicInteger;

/// Something in native memory that several owners use; the last one to let go disposes of it. Its maker is the first owner.
public abstract class Shared {
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

    /// Frees what is shared; called once.
    protected abstract void dispose();
}
