package kv.lsm.disk;

import java.io.IOException;

/// A directory could not even be opened to be synced, as where too many files are open: nothing was lost by it,
/// and the sync can be tried again.
public final class SyncNotBegunException extends IOException {
    public SyncNotBegunException(IOException cause) {
        super("the directory cannot be opened: " + cause.getMessage(), cause);
    }
}
