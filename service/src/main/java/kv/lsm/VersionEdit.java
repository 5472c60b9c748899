package kv.lsm;

import java.util.List;

/// One atomic change of what the store consists of; a record of the manifest.
///
/// @param firstLog write-ahead logs below this number are no longer needed
/// @param logged true when the log of that number is a file
/// @param nextNumber file numbers from here on were not used when the edit was made
/// @param removed numbers of tables that are no longer part of the store
/// @param added tables that are now; one that moves to another level is in both lists
public record VersionEdit(
        long firstLog, boolean logged, long nextNumber, List<Long> removed, List<TableMetadata> added) {
    public VersionEdit {
        removed = List.copyOf(removed);
        added = List.copyOf(added);
    }
}
