package kv.lsm;

import java.util.List;

/// A sorted run: tables that do not overlap, in key order, so that a key is in one of them at most. What one
/// flush or one merge wrote, or everything that a level from 1 on holds.
///
/// @param level 0 holds many runs, each other level at most one
/// @param number tells runs of level 0 apart, and which is newer: the higher one; 0 in other levels
public record Run(int level, long number, List<TableMetadata> tables) {
    public Run {
        tables = List.copyOf(tables);
    }

    long bytes() {
        return tables.stream().mapToLong(TableMetadata::bytes).sum();
    }

    /// The tables that share keys with the range, ends included.
    List<TableMetadata> overlapping(byte[] first, byte[] last) {
        return tables.stream().filter(table -> table.overlaps(first, last)).toList();
    }
}
