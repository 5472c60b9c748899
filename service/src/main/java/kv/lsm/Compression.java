package kv.lsm;

/// How data blocks are stored.
public enum Compression {
    NONE,
    /// LZ4 block format; a block that does not shrink is stored as it is.
    LZ4
}
