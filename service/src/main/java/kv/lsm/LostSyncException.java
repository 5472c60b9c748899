package kv.lsm;

import java.io.IOException;

/// A sync has failed of something that is in use: the manifest, or the names in the directory. What it did not
/// bring to the disk may be lost, although the system still shows it, and a later sync would not tell. So nothing
/// is to be tried again after it.
final class LostSyncException extends IOException {
    LostSyncException(String what, IOException cause) {
        super(what + " could not be synced: " + cause.getMessage(), cause);
    }
}
