package kv.lsm;

import java.util.HashMap;
import java.util.Map;
import kv.lsm.table.SSTable;

/// What a compaction reads: the tables of its choice, kept until it is closed, and the version that they were
/// chosen from.
final class CompactionInputs implements AutoCloseable {
    private final Version version;
    private final CompactionChoice choice;
    private final Map<Long, SSTable> tables = new HashMap<>();

    /// @param view retained by the caller for the time of this call
    CompactionInputs(ReadView view, CompactionChoice choice) {
        this.version = view.version();
        this.choice = choice;
        for (TableMetadata table : choice.tables()) {
            SSTable open = view.table(table.number());
            open.retain();
            tables.put(table.number(), open);
        }
    }

    Version version() {
        return version;
    }

    CompactionChoice choice() {
        return choice;
    }

    SSTable table(long number) {
        return tables.get(number);
    }

    void willBeDeleted() {
        tables.values().forEach(SSTable::willBeDeleted);
    }

    @Override
    public void close() {
        tables.values().forEach(SSTable::release);
    }
}
