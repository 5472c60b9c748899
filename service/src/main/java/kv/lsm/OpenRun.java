package kv.lsm;

import java.util.Arrays;
import java.util.Map;
import kv.lsm.memory.EntryIterator;
import kv.lsm.table.SSTable;

/// A sorted run whose tables are open, for reading. Keeps no table alive: the view that has it does.
final class OpenRun {
    private final SSTable[] tables;
    private final TableBounds bounds;

    OpenRun(Run run, Map<Long, SSTable> open) {
        tables = run.tables().stream().map(table -> open.get(table.number())).toArray(SSTable[]::new);
        bounds = new TableBounds(run.tables());
    }

    SSTable[] tables() {
        return tables;
    }

    /// The only table that may hold `key`, or null.
    SSTable tableOf(byte[] key) {
        int index = bounds.find(key);
        return index < 0 ? null : tables[index];
    }

    /// The entries from `startOrNull` on.
    EntryIterator iterator(byte[] startOrNull) {
        int first = startOrNull == null ? 0 : bounds.firstEndingAtOrAfter(startOrNull);
        return RunIterator.ofRange(Arrays.asList(tables).subList(first, tables.length), startOrNull);
    }
}
