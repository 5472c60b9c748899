package kv.lsm;

/// The store was closed before or while the call was made.
public final class StoreClosedException extends StoreException {
    public StoreClosedException() {
        super("the store is closed");
    }
}
