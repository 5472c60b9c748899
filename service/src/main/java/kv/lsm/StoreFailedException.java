package kv.lsm;

/// The store refuses writes because an earlier write or sync to a file failed. What was acknowledged before
/// stays readable.
///
/// A failed fsync is never tried again: the kernel may have dropped the pages and report success the second
/// time.
public final class StoreFailedException extends StoreException {
    public StoreFailedException(String message, Throwable cause) {
        super(message, cause);
    }
}
