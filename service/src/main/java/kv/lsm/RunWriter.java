package kv.lsm;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import kv.lsm.memory.EntryIterator;
import kv.lsm.table.SSTable;
import kv.lsm.table.SSTableWriter;
import kv.lsm.table.TableSummary;

/// Writes entries in key order as the tables of one run, starting a new table when one has its target size. For
/// one thread.
///
/// A table is written under a temporary name, made durable, renamed; its name is durable when [#finish]
/// returns.
final class RunWriter implements AutoCloseable {
    /// A table ends here whatever its size: filter and hash index need twelve bytes per key while the table is
    /// written.
    private static final long ENTRIES_MAX = 1 << 20;

    private final StoreFiles files;
    private final int level;
    private final long run;
    private final boolean merges;
    private final TimeSlices slices;
    private final List<TableMetadata> written = new ArrayList<>();
    private final List<NewTable> opened = new ArrayList<>();
    private SSTableWriter writer;
    /// Of the table that is being written, or 0.
    private long number;
    private boolean finished;

    private RunWriter(StoreFiles files, int level, long run, boolean merges, TimeSlices slices) {
        this.files = files;
        this.level = level;
        this.run = run;
        this.merges = merges;
        this.slices = slices;
    }

    /// For what was written lately, which is likely to be read soon.
    ///
    /// @param slices of the thread that adds
    static RunWriter ofFlush(StoreFiles files, long run, TimeSlices slices) {
        return new RunWriter(files, 0, run, false, slices);
    }

    /// For what was there before. Where tables are larger than memory it is not kept in the page cache: few of
    /// its pages would be read before they are dropped, and they would drive out some that are needed.
    ///
    /// @param slices of the thread that adds
    static RunWriter ofMerge(StoreFiles files, int level, long run, TimeSlices slices) {
        return new RunWriter(files, level, run, true, slices);
    }

    /// Adds the iterator's current entry.
    void add(EntryIterator entry) throws IOException {
        if (writer != null && (writer.bytes() >= files.options().tableBytes() || writer.entries() >= ENTRIES_MAX)) {
            finishTable();
        }
        if (writer == null) {
            number = files.newNumber();
            writer = new SSTableWriter(
                    files.disk(), files.path(temporaryName()), files.tableOptions(), files.allocator(), slices);
        }
        writer.add(entry.keyAddress(), entry.keyLength(), entry.valueAddress(), entry.valueLength());
        slices.step();
    }

    private String temporaryName() {
        return FileNames.table(number) + FileNames.TEMPORARY;
    }

    private void finishTable() throws IOException {
        TableSummary summary = writer.finish();
        SSTableWriter done = writer;
        writer = null;
        done.close();
        if (merges && files.fit().exceeds()) {
            files.disk().dropCached(files.path(temporaryName()));
        }
        files.disk().rename(files.path(temporaryName()), files.path(FileNames.table(number)));
        long named = number;
        number = 0;
        written.add(new TableMetadata(
                named,
                level,
                run,
                summary.bytes(),
                summary.entries(),
                summary.tombstones(),
                summary.smallest(),
                summary.largest()));
    }

    /// The tables, durable and open; empty when nothing was added. The caller releases them.
    List<NewTable> finish() throws IOException {
        if (writer != null) {
            finishTable();
        }
        if (!written.isEmpty()) {
            files.syncDirectory();
        }
        for (TableMetadata metadata : written) {
            opened.add(new NewTable(metadata, files.openTable(metadata.number())));
        }
        finished = true;
        return List.copyOf(opened);
    }

    /// Gives up what was not finished, and the room that it takes.
    @Override
    public void close() throws IOException {
        if (finished) {
            return;
        }
        opened.stream().map(NewTable::table).forEach(SSTable::release);
        try {
            if (writer != null) {
                writer.close();
            }
        } finally {
            if (number != 0) { // an error does not tell which of its names it has
                files.deleteUnneeded(temporaryName(), FileNames.table(number));
            }
            files.deleteUnneeded(written.stream()
                    .map(metadata -> FileNames.table(metadata.number()))
                    .toArray(String[]::new));
        }
    }
}
