package kv.lsm;

import java.nio.file.Path;

/// Another process, or another store in this one, uses the directory.
public final class StoreLockedException extends StoreException {
    public StoreLockedException(Path directory) {
        super("the directory is in use by another store: directory=" + directory);
    }
}
