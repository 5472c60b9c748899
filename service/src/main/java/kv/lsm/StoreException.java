package kv.lsm;

/// An operating error of the store: the environment or the data is at fault, not the caller's code.
///
/// ```
/// StoreException
/// ├── CorruptionException     a file does not hold what was written; names file and byte offset
/// ├── WriteStalledException   try again later; nothing was applied
/// ├── AttemptFailedException  an operator's request failed for a reason that may pass, and is tried again
/// ├── StoreFailedException    an I/O error stopped all writes until the store is opened again
/// ├── StoreClosedException    the store was closed
/// └── StoreLockedException    another process (or store) has the directory
/// ```
public class StoreException extends RuntimeException {
    public StoreException(String message) {
        super(message);
    }

    public StoreException(String message, Throwable cause) {
        super(message, cause);
    }
}
