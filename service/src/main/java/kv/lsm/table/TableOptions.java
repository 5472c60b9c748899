package kv.lsm.table;

import kv.lsm.Compression;
import kv.lsm.ReadMode;
import kv.lsm.StoreOptions;

/// The part of [StoreOptions] that concerns one table.
public record TableOptions(int blockBytes, int bloomBitsPerKey, Compression compression, ReadMode read) {
    /// True when tables get a hash index: it names places in the file, which only what reads a mapped,
    /// uncompressed table can use.
    boolean hashIndex() {
        return read == ReadMode.MMAP && compression == Compression.NONE;
    }

    public static TableOptions of(StoreOptions options) {
        return new TableOptions(options.blockBytes(), options.bloomBitsPerKey(), options.compression(), options.read());
    }
}
