package kv.lsm;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Which tables make up the store, as sorted runs from the newest to the oldest. Immutable, without any open
/// file.
///
/// If two runs have a key, the earlier one in the list is right: level 0 from the highest run number down, then
/// level 1, 2, ….
public record Version(List<Run> runs) {
    static final Version EMPTY = new Version(List.of());

    private static final Comparator<Run> NEWEST_FIRST = Comparator.comparingInt(Run::level)
            .thenComparing(Comparator.comparingLong(Run::number).reversed());

    public Version {
        runs = List.copyOf(runs);
    }

    static Version of(Iterable<TableMetadata> tables) {
        Map<List<Long>, List<TableMetadata>> byRun = new HashMap<>();
        for (TableMetadata table : tables) {
            byRun.computeIfAbsent(List.of((long) table.level(), table.run()), key -> new ArrayList<>())
                    .add(table);
        }
        List<Run> runs = new ArrayList<>();
        byRun.forEach((key, members) -> {
            members.sort((a, b) -> Arrays.compareUnsigned(a.smallest(), b.smallest()));
            runs.add(new Run(key.get(0).intValue(), key.get(1), members));
        });
        runs.sort(NEWEST_FIRST);
        return new Version(runs);
    }

    List<TableMetadata> tables() {
        return runs.stream().flatMap(run -> run.tables().stream()).toList();
    }

    List<Run> level(int level) {
        return runs.stream().filter(run -> run.level() == level).toList();
    }

    int deepestLevel() {
        return runs.isEmpty() ? 0 : runs.getLast().level();
    }

    /// @throws IllegalStateException when the edit does not fit: it removes what is not there or makes tables
    /// of a run overlap
    Version apply(VersionEdit edit) {
        Map<Long, TableMetadata> tables = new HashMap<>();
        tables().forEach(table -> tables.put(table.number(), table));
        for (long number : edit.removed()) {
            require(tables.remove(number) != null, "removes a table that is not there: " + FileNames.table(number));
        }
        for (TableMetadata table : edit.added()) {
            require(tables.put(table.number(), table) == null, "adds a table twice: " + table);
        }
        Version next = of(tables.values());
        for (Run run : next.runs) {
            require(run.level() == 0 || run.number() == 0, "a second run in level " + run.level());
            for (int i = 1; i < run.tables().size(); i++) {
                TableMetadata before = run.tables().get(i - 1);
                TableMetadata after = run.tables().get(i);
                require(
                        Arrays.compareUnsigned(before.largest(), after.smallest()) < 0,
                        "tables of one run overlap: " + before + ", " + after);
            }
        }
        return next;
    }

    private static void require(boolean condition, String problem) {
        if (!condition) {
            throw new IllegalStateException("version edit " + problem);
        }
    }
}
