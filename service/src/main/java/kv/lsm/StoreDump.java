package kv.lsm;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.LongFunction;
import kv.lsm.disk.FileCopy;
import kv.lsm.log.LogInspection;
import kv.lsm.log.WriteAheadLogFormat;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Memory;
import kv.lsm.table.SSTable;
import kv.lsm.table.TableInspection;

/// Shows what a closed store holds, a line each, keys and values [Escaped]. Changes nothing.
public final class StoreDump {
    /// Which lines.
    ///
    /// @param startOrNull first key
    /// @param endOrNull the first key not shown
    /// @param limit most lines
    /// @param valueBytes shown of each value
    /// @param fileOrNull the name of the one file to look into
    public record Selection(byte[] startOrNull, byte[] endOrNull, long limit, int valueBytes, String fileOrNull) {}

    private final ClosedStore store;
    private final Selection selection;
    private final Consumer<String> out;
    private long left;
    private boolean damaged;
    private boolean cut;

    public StoreDump(ClosedStore store, Selection selection, Consumer<String> out) {
        this.store = store;
        this.selection = selection;
        this.out = out;
        left = selection.limit;
    }

    /// The edits of the manifest.
    public void manifest() throws IOException {
        ManifestInspection manifest = ManifestInspection.of(store);
        for (int i = 0; i < manifest.edits().size(); i++) {
            VersionEdit edit = manifest.edits().get(i);
            line("edit offset=" + manifest.offsets().get(i) + " first_log=" + edit.firstLog() + " logged="
                    + edit.logged() + " next_number=" + edit.nextNumber());
            edit.removed().forEach(number -> line("  - " + FileNames.table(number)));
            edit.added()
                    .forEach(table -> line("  + " + FileNames.table(table.number()) + " level=" + table.level()
                            + " run="
                            + table.run() + " bytes=" + table.bytes() + " entries=" + table.entries() + " tombstones="
                            + table.tombstones() + " from=" + Escaped.of(table.smallest()) + " to="
                            + Escaped.of(table.largest())));
        }
        manifest.findings().forEach(this::tell);
    }

    /// The readable entries of each table.
    public void tables() throws IOException {
        requireWanted(store.tables, FileNames::table);
        for (long number : store.tables) {
            String name = FileNames.table(number);
            if (isWanted(name)) {
                TableInspection.inspect(
                                store.files.disk(),
                                store.path(name),
                                store.files.allocator(),
                                (key, keyLength, value, valueLength) -> {
                                    byte[] bytes = Memory.copyOf(key, keyLength);
                                    if (isInRange(bytes)) {
                                        line(name + " " + entry(bytes, value, valueLength));
                                    }
                                })
                        .problems()
                        .forEach(problem -> tell(Finding.problem(name, problem.offset(), problem.text())));
            }
        }
    }

    /// The valid records of each log, also those that an opening would drop.
    public void logs() throws IOException {
        requireWanted(store.logs, FileNames::log);
        for (long number : store.logs) {
            String name = FileNames.log(number);
            if (isWanted(name)) {
                try (FileCopy copy = FileCopy.of(store.files.disk(), store.path(name), store.files.allocator())) {
                    copy.gaps().forEach(gap -> tell(Finding.problem(name, gap.offset(), gap.toString())));
                    long log = copy.reader().map();
                    long bytes = copy.reader().bytes();
                    LogInspection.Result result =
                            LogInspection.read(number, log, bytes, record -> record(name, record - log, record));
                    if (!WriteAheadLogFormat.mayBeLog(log, bytes)) {
                        tell(Finding.problem(name, LogReplay.NO_LOG));
                    }
                    if (result.lostBytes() > 0) {
                        tell(Finding.problem(name, result.lostAt(), "bytes before valid records are none"));
                    } else if (result.lostAt() >= 0) {
                        tell(Finding.note(name, "the end is torn: offset=" + result.lostAt()));
                    }
                }
            }
        }
    }

    private void record(String name, long offset, long record) {
        byte[] key = Memory.copyOf(WriteAheadLogFormat.keyAddress(record), WriteAheadLogFormat.keyLength(record));
        if (isInRange(key)) {
            line(name + " offset=" + offset + " "
                    + entry(
                            key,
                            WriteAheadLogFormat.valueAddress(record, key.length),
                            WriteAheadLogFormat.valueLength(record)));
        }
    }

    /// What a range read would show: of each key its newest value.
    ///
    /// @throws CorruptionException when the store is damaged
    /// @throws StoreException when a page of it cannot be read
    public void entries() throws IOException {
        try {
            showEntries();
        } catch (InternalError e) {
            throw store.files.unreadablePage(e);
        }
    }

    private void showEntries() throws IOException {
        ManifestInspection manifest = ManifestInspection.of(store);
        if (!manifest.isComplete()) {
            throw new CorruptionException(store.path(FileNames.MANIFEST), 0, "the manifest is damaged");
        }
        List<SSTable> open = new ArrayList<>();
        List<Memtable> memtables = LogReplay.run(
                        store.files,
                        store.logs.stream()
                                .filter(n -> n >= manifest.firstLog())
                                .toList(),
                        manifest.firstLog())
                .memtables();
        try {
            List<EntryIterator> sources = new ArrayList<>();
            memtables.reversed().forEach(memtable -> sources.add(memtable.iterator(null, Long.MAX_VALUE)));
            for (Run run : Version.of(manifest.tables().values()).runs()) {
                List<SSTable> tables = new ArrayList<>();
                for (TableMetadata table : run.tables()) {
                    if (!store.tables.contains(table.number())) {
                        String name = FileNames.table(table.number());
                        throw new CorruptionException(store.path(name), 0, store.files.missing("a table", name));
                    }
                    tables.add(store.files.openTable(table.number()));
                }
                open.addAll(tables);
                sources.add(RunIterator.ofRange(tables, null));
            }
            show(sources);
        } finally {
            open.forEach(SSTable::release);
            memtables.forEach(Memtable::release);
        }
    }

    private void show(List<EntryIterator> sources) {
        try (MergingIterator entries = new MergingIterator(sources)) {
            while (!cut && entries.next()) {
                byte[] key = Memory.copyOf(entries.keyAddress(), entries.keyLength());
                if (isBehindRange(key)) {
                    return;
                }
                if (entries.valueLength() != EntryIterator.TOMBSTONE && isInRange(key)) {
                    line(entry(key, entries.valueAddress(), entries.valueLength()));
                }
            }
        }
    }

    private void requireWanted(Set<Long> numbers, LongFunction<String> name) {
        if (selection.fileOrNull != null && numbers.stream().map(name::apply).noneMatch(this::isWanted)) {
            throw new StoreException("the store has no such file: file=" + selection.fileOrNull);
        }
    }

    private boolean isWanted(String name) {
        return selection.fileOrNull == null
                || Path.of(name).equals(Path.of(selection.fileOrNull).getFileName());
    }

    private boolean isInRange(byte[] key) {
        return (selection.startOrNull == null || Arrays.compareUnsigned(key, selection.startOrNull) >= 0)
                && !isBehindRange(key);
    }

    private boolean isBehindRange(byte[] key) {
        return selection.endOrNull != null && Arrays.compareUnsigned(key, selection.endOrNull) >= 0;
    }

    private String entry(byte[] key, long value, int valueLength) {
        return valueLength == EntryIterator.TOMBSTONE
                ? "delete " + Escaped.of(key)
                : "put " + Escaped.of(key) + " " + Escaped.of(Memory.copyOf(value, valueLength), selection.valueBytes);
    }

    /// True when one of the lines told of a problem.
    public boolean foundProblems() {
        return damaged;
    }

    /// True when there are more lines than were to be shown.
    public boolean isCut() {
        return cut;
    }

    private void tell(Finding finding) {
        damaged |= finding.isProblem();
        out.accept(finding.toString());
    }

    private void line(String text) {
        if (left > 0) {
            left--;
            out.accept(text);
        } else {
            cut = true;
        }
    }
}
