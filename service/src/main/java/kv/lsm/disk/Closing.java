package kv.lsm.disk;

import java.io.Closeable;
import java.io.IOException;

/// Closes files that were only read, or are durable or not needed: an error of that loses nothing but a
/// descriptor, and whoever closes one has others to close.
public final class Closing {
    private static final System.Logger LOGGER = System.getLogger(Closing.class.getName());

    private Closing() {}

    /// @param name for the log
    public static void quietly(Closeable file, Object name) {
        try {
            file.close();
        } catch (IOException e) {
            LOGGER.log(
                    System.Logger.Level.WARNING,
                    "a file could not be closed: file=" + name + ", reason=" + e.getMessage());
        }
    }
}
