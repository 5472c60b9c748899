package kv.lsm;

import java.util.List;

/// A sorted run: tables that do not overlap, in key order, so that a key is in one of them at most.
///
/// A flush writes one, and so does a merge. A get looks into one table of each run, so their number is what a
/// read costs; compaction merges them to keep it small.
///
/// ```
///  keys         a ────────────────────────────► z
///  level 0      run 9    [ table ]                       what the last flush wrote
///               run 7    [     table     ][ table ]
///  level 1      run 0    [ table ][ table ][ table ]     all of the level
///  level 2      run 0    [ table ][ table ][ table ]     older than all above
/// ```
///
/// Also used for a part of a run, which is one itself: what a merge takes as input ([CompactionChoice]).
///
/// @param level 0 holds many runs, each other level at most one
/// @param number tells runs of level 0 apart, and which is newer: the higher one; 0 in other levels
/// @param tables by their smallest key
public record Run(int level, long number, List<TableMetadata> tables) {
    public Run {
        tables = List.copyOf(tables);
    }

    /// Size of its tables' files.
    long bytes() {
        return tables.stream().mapToLong(TableMetadata::bytes).sum();
    }

    /// The tables that share keys with the range, ends included.
    List<TableMetadata> overlapping(byte[] first, byte[] last) {
        return tables.stream().filter(table -> table.overlaps(first, last)).toList();
    }
}
