package kv.lsm;

import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.Path;

/// A directory cannot become a checkpoint; nothing was left in it.
public final class CheckpointException extends StoreException {
    /// Why not.
    public enum Reason {
        EXISTS("it exists already"),
        PARENT_MISSING("the directory above it does not exist"),
        INSIDE_STORE("it is inside the store's directory"),
        NOT_MADE("the directory cannot be made"),
        OTHER_FILE_SYSTEM("the store's tables cannot be linked there, as on another file system");

        private final String text;

        Reason(String text) {
            this.text = text;
        }
    }

    private final Reason reason;

    CheckpointException(Path directory, Reason reason, Exception causeOrNull) {
        super(
                "no checkpoint can be made: " + reason.text + ": directory="
                        + directory.toString().replaceAll("\\p{Cntrl}", "?")
                        + systemsReason(causeOrNull),
                causeOrNull);
        this.reason = reason;
    }

    /// What the operating system says, without the path, or nothing.
    private static String systemsReason(Exception causeOrNull) {
        return switch (causeOrNull) {
            case AccessDeniedException e -> ", reason=Permission denied";
            case FileSystemException e when e.getReason() != null -> ", reason=" + e.getReason();
            case null, default -> "";
        };
    }

    public Reason reason() {
        return reason;
    }
}
