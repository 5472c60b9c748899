package kv.lsm;

import java.util.List;

/// A sorted run: tables in key order that do not overlap.
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
