package kv.lsm;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;

/// An operating error of the store: the environment or the data is at fault, not the caller's code.
///
/// ```
/// StoreException
/// ├── CorruptionException     a file does not hold what was written; names file and byte offset
/// ├── WriteStalledException   try again later; nothing was applied
/// ├── AttemptFailedException  an operator's request failed for a reason that may pass: to be asked again
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

    /// What went wrong: Java's file system errors have the path as their whole message when their class says the
    /// rest.
    public static String reasonOf(Throwable e) {
        return switch (e) {
            case FileAlreadyExistsException f -> "not a directory: " + f.getFile();
            case NoSuchFileException f -> "no such file or directory: " + f.getFile();
            case AccessDeniedException f -> "permission denied: " + f.getFile();
            default -> withAdvice(e.getMessage() == null ? e.toString() : e.getMessage());
        };
    }

    /// What the log needs of an error beside its line: nothing where the environment is at fault.
    public static Throwable traceOrNull(Throwable e) {
        return e instanceof IOException || e instanceof StoreException ? null : e;
    }

    private static String withAdvice(String reason) {
        if (reason.endsWith("Too many open files")) {
            return reason + " (ulimit -n sets how many may be)";
        }
        // what else forbids it is told as "permission denied"
        return reason.endsWith("Operation not permitted")
                ? reason + " (lsattr shows whether file or directory is immutable: chattr -i)"
                : reason;
    }
}
