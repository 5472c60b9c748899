package kv.lsm;

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
                        + directory.toString().replaceAll("\\p{Cntrl}", "?"),
                causeOrNull);
        this.reason = reason;
    }

    public Reason reason() {
        return reason;
    }
}
