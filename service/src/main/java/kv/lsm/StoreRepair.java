package kv.lsm;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.function.Consumer;
import kv.lsm.disk.Disk;
import kv.lsm.disk.FileCopy;
import kv.lsm.disk.ReadFile;
import kv.lsm.log.LogInspection;
import kv.lsm.log.WriteAheadLogFormat;
import kv.lsm.log.WriteAheadLogReader;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Mapped;
import kv.lsm.table.SSTable;
import kv.lsm.table.TableInspection;

/// Makes a damaged store one that opens, with everything in it that can still be read.
///
/// 1. A damaged table becomes a new one of its readable blocks, in the same place; all logs become tables of
///    level 0: what an opening would read of them, or, where it would refuse them, every valid record.
/// 2. Where the manifest does not tell the order of tables, all go to level 0 in the order that is most likely,
///    and the report says so.
/// 3. Nothing is destroyed: what was damaged, and what the manifest says is not part of the store, is in the
///    folder [LostAndFound#FOLDER] afterwards.
/// 4. New files are durable before the new manifest, and that before old files lose their names: a repair that
///    is cut off can be run again.
public final class StoreRepair {
    private static final String LOST_FILE = "; if the store had a file of that name, all that it held is lost";
    private static final String LOST_LOG = "; if the store had another log of that name, all that it held is lost";

    private final ClosedStore store;
    private final Consumer<String> report;
    private final LostAndFound lost;
    private final RepairMark mark;
    /// What each run of the repaired store has, the newest run first.
    private final List<List<TableMetadata>> runs = new ArrayList<>();
    private boolean loses;
    /// True when tables of one run share keys: then the levels cannot stay.
    private boolean overlaps;

    /// @param report called for each line about what was done and what is lost
    public StoreRepair(ClosedStore store, Consumer<String> report) {
        this.store = store;
        this.report = report;
        lost = new LostAndFound(store.files.disk(), store.files.directory());
        mark = new RepairMark(store);
    }

    /// True when everything could be kept.
    public boolean run() throws IOException {
        if (!store.inTheWay.isEmpty()) {
            takeOutWhatIsNoFile(ManifestInspection.of(store));
        }
        takeOutTablesOfCutOffRepair(ManifestInspection.of(store));
        ManifestInspection manifest = ManifestInspection.of(store);
        manifest.findings().stream()
                .filter(Finding::isProblem)
                .forEach(finding ->
                        say(true, finding.file() + ": " + finding.text() + "; what it told of tables and logs"));
        // One that is missing may come back, from a backup, under its own number.
        manifest.tables().keySet().forEach(number -> store.files.startNumbersAt(number + 1));
        mark.set();
        List<TableMetadata> found = new ArrayList<>();
        List<TableMetadata> missing = new ArrayList<>();
        Map<Long, List<TableMetadata>> replacements = new HashMap<>();
        for (TableMetadata table : manifest.tables().values()) {
            if (store.tables.contains(table.number())) {
                found.add(table);
                replacements.put(table.number(), readable(table));
            } else {
                missing.add(table);
                // an edit that is lost may have removed it
                say(
                        manifest.isComplete(),
                        FileNames.table(table.number()) + ": the table is missing: keys from "
                                + Escaped.of(table.smallest()) + " to " + Escaped.of(table.largest()));
            }
        }
        order(manifest, found, missing, replacements);
        runs.addAll(0, logs(manifest).reversed());
        boolean areLevelsKept = manifest.isComplete() && !overlaps;
        writeManifest(areLevelsKept ? levelsKept() : allInLevel0(), areLevelsKept);
        return !loses;
    }

    private void takeOutWhatIsNoFile(ManifestInspection manifest) throws IOException {
        for (Map.Entry<String, Disk.Kind> each : store.inTheWay.entrySet()) {
            String name = each.getKey();
            boolean mayBeTable = FileNames.tableNumber(name).isPresent() && !manifest.isComplete();
            boolean isLost = mayBeTable || FileNames.logNumber(name).orElse(Long.MIN_VALUE) >= manifest.firstLog();
            say(isLost, name + ": " + StoreDirectory.noFile(each.getValue()) + (isLost ? LOST_FILE : ""));
            report.accept("moved: " + name + " to " + lost.move(name));
        }
        store.inTheWay.clear();
    }

    /// They would be taken for the newest ones, and all that they hold is here twice. Not so those of one that was
    /// cut off after its manifest.
    private void takeOutTablesOfCutOffRepair(ManifestInspection manifest) throws IOException {
        List<Long> unnamed = mark.tablesOfCutOffRepair().stream()
                .filter(number -> !manifest.tables().containsKey(number))
                .toList();
        for (long number : unnamed) {
            String name = FileNames.table(number);
            keep(name, ", which a repair that was cut off has made,");
            store.tables.remove(number);
        }
        lost.makeDurable();
        lost.removeFirstNames();
    }

    /// @param what says of the file why, or nothing
    private void keep(String name, String what) throws IOException {
        report.accept("moved: " + name + what + " to " + lost.keep(name));
    }

    private void say(boolean isLoss, String text) {
        loses |= isLoss;
        report.accept((isLoss ? "lost: " : "note: ") + text);
    }

    /// What can be read of a table that the manifest names, as tables of the same level and run. Another whole
    /// table under its name is none of the store's.
    private List<TableMetadata> readable(TableMetadata table) throws IOException {
        String name = FileNames.table(table.number());
        TableInspection.Result result = inspect(name, (key, keyLength, value, valueLength) -> {});
        List<String> differences = table.differences(result, Files.size(store.path(name)));
        if (!result.problems().isEmpty() || differences.isEmpty()) {
            return readable(table, result);
        }
        say(
                true,
                name + ": not the table that the manifest names: " + String.join("; ", differences) + ": keys from "
                        + Escaped.of(table.smallest()) + " to " + Escaped.of(table.largest())
                        + "; older values of these may come back");
        keep(name, "");
        return List.of();
    }

    private List<TableMetadata> unnamed(long number) throws IOException {
        TableInspection.Result result = inspect(FileNames.table(number), (key, keyLength, value, valueLength) -> {});
        return readable(new TableMetadata(number, 0, number, 0, 0, 0, new byte[0], new byte[0]), result);
    }

    private List<TableMetadata> readable(TableMetadata table, TableInspection.Result result) throws IOException {
        String name = FileNames.table(table.number());
        if (result.problems().isEmpty()) {
            return result.largestOrNull() == null
                    ? List.of()
                    : List.of(new TableMetadata(
                            table.number(),
                            table.level(),
                            table.run(),
                            Files.size(store.path(name)),
                            result.entries(),
                            result.tombstones(),
                            result.smallestOrNull(),
                            result.largestOrNull()));
        }
        for (TableInspection.Problem problem : result.problems()) {
            String where = problem.losesKeys()
                    ? (problem.afterOrNull() == null
                                    ? ": the first entries"
                                    : ": entries behind " + Escaped.of(problem.afterOrNull()))
                            + "; older values of their keys may come back"
                    : "";
            say(problem.losesKeys(), name + ": " + problem.text() + ": offset=" + problem.offset() + where);
        }
        long expected = table.entries();
        if (expected > result.entries()) {
            say(true, name + ": entries lost: " + (expected - result.entries()) + " of " + expected);
        }
        keep(name, "");
        return rewrite(name, table.level(), table.run());
    }

    private TableInspection.Result inspect(String name, TableInspection.Entries consumer) throws IOException {
        return TableInspection.inspect(store.files.disk(), store.path(name), store.files.allocator(), consumer);
    }

    private List<TableMetadata> rewrite(String name, int level, long run) throws IOException {
        try (RunWriter writer = RunWriter.ofMerge(store.files, level, run, TimeSlices.endless())) {
            inspect(
                    name,
                    (key, keyLength, value, valueLength) ->
                            writer.add(new EntryAt(key, keyLength, value, valueLength)));
            return released(writer.finish());
        }
    }

    private static List<TableMetadata> released(List<NewTable> tables) {
        tables.stream().map(NewTable::table).forEach(SSTable::release);
        return tables.stream().map(NewTable::metadata).toList();
    }

    /// Puts the runs of tables into order, the newest first; tables that only a lost edit can have named among
    /// them: in the place of the newest table that is missing, since a compaction whose edit is lost may have
    /// replaced it, or else in front of all; but behind the runs of level 0 with higher numbers than theirs. A
    /// flush gets the number of its run after all that a table of a lower number can hold was flushed.
    private void order(
            ManifestInspection manifest,
            List<TableMetadata> found,
            List<TableMetadata> missing,
            Map<Long, List<TableMetadata>> replacements)
            throws IOException {
        List<TableMetadata> named = new ArrayList<>(found);
        named.addAll(missing);
        TableMetadata inItsPlace = null;
        int unnamedAt = 0;
        NavigableMap<Long, Integer> behindLevel0 = new TreeMap<>(); // a run's number, and the place behind it
        for (Run run : Version.of(named).runs()) {
            if (inItsPlace == null) {
                inItsPlace = run.tables().stream()
                        .filter(missing::contains)
                        .findFirst()
                        .orElse(null);
                unnamedAt = inItsPlace == null ? 0 : runs.size();
            }
            addRun(run.tables().stream()
                    .flatMap(table -> replacements.getOrDefault(table.number(), List.of()).stream())
                    .toList());
            if (run.level() == 0) {
                behindLevel0.put(run.number(), runs.size());
            }
        }
        List<String> unnamed = new ArrayList<>();
        for (long number : store.tables) { // none goes behind the one before it: what they shift is behind both
            String name = FileNames.table(number);
            if (manifest.tables().containsKey(number)) {
                continue;
            }
            if (manifest.isComplete() || manifest.hasRemoved(number)) {
                keep(name, ", which is not part of the store,");
            } else {
                Map.Entry<Long, Integer> newer = behindLevel0.higherEntry(number);
                runs.add(newer == null ? unnamedAt : Math.max(unnamedAt, newer.getValue()), unnamed(number));
                unnamed.add(name);
            }
        }
        if (!unnamed.isEmpty()) {
            say(
                    true,
                    "the order of tables that the manifest does not name: taken for newer the higher their number, and "
                            + (inItsPlace == null
                                    ? "for newer than all that it names"
                                    : "put in the place of " + FileNames.table(inItsPlace.number()))
                            + ", but behind runs of level 0 with higher numbers; where two hold a key, its value may "
                            + "be an older one: tables=" + String.join(",", unnamed));
        }
    }

    /// Where an edit is missing, tables of one run can overlap: then each is a run of its own, the higher
    /// number being the newer.
    private void addRun(List<TableMetadata> tables) {
        boolean overlap = false;
        for (int i = 1; i < tables.size(); i++) {
            overlap |= Arrays.compareUnsigned(
                            tables.get(i - 1).largest(), tables.get(i).smallest())
                    >= 0;
        }
        if (overlap) {
            overlaps = true;
            tables.stream()
                    .sorted(Comparator.comparingLong(TableMetadata::number).reversed())
                    .forEach(table -> runs.add(List.of(table)));
        } else {
            runs.add(tables);
        }
    }

    /// The logs as runs of level 0, the oldest first.
    private List<List<TableMetadata>> logs(ManifestInspection manifest) throws IOException {
        Map<Long, Long> names = neededLogs(manifest);
        List<Long> needed = List.copyOf(names.values());
        boolean areNamed = names.entrySet().stream()
                .allMatch(name -> name.getKey().equals(name.getValue())); // or an opening would refuse them
        LogReplay.Result replayed = areNamed ? replayedOrNull(needed, manifest) : null;
        List<List<TableMetadata>> tables = new ArrayList<>();
        if (replayed == null) {
            for (long number : needed) {
                tables.add(log(number));
            }
        } else {
            try {
                tables.addAll(replayed(needed, replayed));
            } catch (InternalError e) { // the next repair finds the page, and reads the rest
                throw store.files.unreadablePage(e);
            } finally {
                replayed.memtables().forEach(Memtable::release);
            }
        }
        tables.removeIf(List::isEmpty);
        return tables;
    }

    /// The needed logs by their own numbers, the oldest first, with those of the names that they are read under.
    private Map<Long, Long> neededLogs(ManifestInspection manifest) throws IOException {
        Map<Long, Long> ownNumbers = new HashMap<>();
        NavigableMap<Long, Long> names = new TreeMap<>();
        for (long number : store.logs) {
            long own = ownNumber(number);
            ownNumbers.put(number, own);
            if (own == number) {
                names.put(own, number);
            } else {
                names.putIfAbsent(own, number);
            }
        }
        for (long number : store.logs) {
            String name = FileNames.log(number);
            long own = ownNumbers.get(number);
            boolean isCopy = names.get(own) != number;
            boolean isNeeded = number >= manifest.firstLog();
            if (!isNeeded && (isCopy || own < manifest.firstLog())) {
                keep(name, ", which is no longer needed,");
            } else if (own < manifest.firstLog()) {
                say(true, name + ": by its header " + FileNames.log(own) + ", which is no longer needed" + LOST_LOG);
                keep(name, "");
            } else if (isCopy) {
                say(
                        true,
                        name + ": by its header a copy of " + FileNames.log(own) + ", and not read: "
                                + FileNames.log(names.get(own)) + " is" + LOST_LOG);
                keep(name, "");
            } else if (own != number) {
                boolean isLost = number == manifest.firstLog() && !names.containsKey(number);
                say(
                        isLost,
                        name + ": by its header " + FileNames.log(own) + ", and read as that"
                                + (isLost ? LOST_LOG : ""));
            }
        }
        return names.tailMap(manifest.firstLog());
    }

    /// The number of a log by its header, which a copy of it under another name keeps; where none can be read, that
    /// of its name.
    private long ownNumber(long number) throws IOException {
        Path path = store.path(FileNames.log(number));
        try (ReadFile file = store.files.disk().open(path)) {
            WriteAheadLogFormat.Header header =
                    new WriteAheadLogReader(path, number, file.map(), file.bytes()).header();
            return header == null ? number : header.number();
        } catch (InternalError e) { // of a page that the disk cannot give
            return number;
        }
    }

    /// What an opening would read of the logs; null when it would refuse them: what is lost of each, [#log] tells.
    private LogReplay.Result replayedOrNull(List<Long> needed, ManifestInspection manifest) throws IOException {
        // a lost edit may tell that those that are missing are no longer needed
        long first = manifest.isComplete() ? manifest.firstLog() : Long.MAX_VALUE;
        try {
            LogReplay.Result replayed = LogReplay.run(store.files, needed, first);
            if (replayed.notLogs().isEmpty()) {
                return replayed;
            }
            replayed.memtables().forEach(Memtable::release);
        } catch (CorruptionException e) {
            say(true, e.file().getFileName() + ": " + e.problem() + ": offset=" + e.byteOffset());
        } catch (InternalError e) { // of a page that the disk cannot give
            return null;
        }
        return null;
    }

    /// The logs as an opening reads them; those of which it does not read all are kept.
    private List<List<TableMetadata>> replayed(List<Long> needed, LogReplay.Result replayed) throws IOException {
        List<List<TableMetadata>> tables = new ArrayList<>();
        for (Memtable memtable : replayed.memtables()) {
            tables.add(written(memtable));
        }
        if (replayed.droppedBytes() > 0) {
            report.accept("note: *.log: torn end, never made durable, which an opening drops, too: bytes="
                    + replayed.droppedBytes());
        }
        List<Long> read = replayed.memtables().stream().map(Memtable::logNumber).toList();
        for (long number : needed) {
            boolean isDropped = !read.contains(number) && replayed.withContent().contains(number);
            if (replayed.droppedBytes() > 0 || isDropped) {
                keep(FileNames.log(number), "");
            }
        }
        return tables;
    }

    private List<TableMetadata> log(long number) throws IOException {
        String name = FileNames.log(number);
        if (Files.size(store.path(name)) < WriteAheadLogFormat.HEADER_BYTES) {
            keep(name, ", which is shorter than its header,");
            return List.of();
        }
        try (FileCopy copy = FileCopy.of(store.files.disk(), store.path(name), store.files.allocator())) {
            return records(number, copy);
        }
    }

    /// The records of a log as a run of level 0.
    private List<TableMetadata> records(long number, FileCopy copy) throws IOException {
        String name = FileNames.log(number);
        for (FileCopy.Gap gap : copy.gaps()) {
            say(
                    true,
                    name + ": " + gap + ", offset=" + gap.offset()
                            + "; what was written there is lost, what was written later is kept");
        }
        Memtable memtable = Memtable.replayed(number, copy.reader().map(), copy.reader(), store.files.allocator());
        try {
            LogInspection.Result result = LogInspection.read(
                    number, memtable.logAddress(), copy.reader().bytes(), memtable::index);
            if (!WriteAheadLogFormat.mayBeLog(
                    memtable.logAddress(), copy.reader().bytes())) {
                boolean isAllLost = result.records() == 0;
                say(
                        isAllLost,
                        name + ": " + LogReplay.NO_LOG
                                + (isAllLost
                                        ? "; if it was the store's, all that it held is lost"
                                        : ", but holds records"));
            }
            if (result.lostAt() >= 0) {
                boolean between = result.lostBytes() > 0;
                say(
                        between,
                        name
                                + (between
                                        ? ": bytes before valid records are none: offset=" + result.lostAt()
                                                + ", bytes=" + result.lostBytes()
                                                + "; what was written there is lost, what was written later is kept"
                                        : ": the end is torn: offset=" + result.lostAt()));
            }
            keep(name, "");
            return result.records() == 0 ? List.of() : written(memtable);
        } finally {
            memtable.release();
        }
    }

    private List<TableMetadata> written(Memtable memtable) throws IOException {
        if (memtable.isEmpty()) {
            return List.of(); // others follow
        }
        List<TableMetadata> tables = write(memtable);
        report.accept("note: " + FileNames.log(memtable.logNumber()) + ": became a table of level 0: entries="
                + entries(tables));
        return tables;
    }

    private static long entries(List<TableMetadata> tables) {
        return tables.stream().mapToLong(TableMetadata::entries).sum();
    }

    private List<TableMetadata> write(Memtable memtable) throws IOException {
        try (EntryIterator entries = memtable.iterator(null, Long.MAX_VALUE);
                RunWriter writer = RunWriter.ofFlush(store.files, store.files.newNumber(), TimeSlices.endless())) {
            while (entries.next()) {
                writer.add(entries);
            }
            Mapped.throwPending();
            return released(writer.finish());
        }
    }

    private List<TableMetadata> levelsKept() {
        return runs.stream().flatMap(Collection::stream).toList();
    }

    private List<TableMetadata> allInLevel0() {
        List<TableMetadata> tables = new ArrayList<>();
        int run = runs.size();
        for (List<TableMetadata> each : runs) {
            long number = run--;
            each.forEach(table -> tables.add(table.movedTo(0, number)));
        }
        return tables;
    }

    private void writeManifest(List<TableMetadata> tables, boolean areLevelsKept) throws IOException {
        if (Files.exists(store.path(FileNames.MANIFEST))) {
            keep(FileNames.MANIFEST, "");
        }
        lost.makeDurable();
        tables.stream()
                .max(Comparator.comparingLong(TableMetadata::run))
                .ifPresent(table -> store.files.startNumbersAt(table.run() + 1));
        long next = store.files.newNumber();
        Version.EMPTY.apply(new VersionEdit(next, false, next, List.of(), tables)); // or the store would not open
        Manifest.replace(
                        store.files.disk(),
                        store.files.directory(),
                        new VersionEdit(next, false, next, List.of(), tables))
                .close();
        mark.remove();
        lost.removeFirstNames();
        for (long number : store.logs) {
            store.files.delete(FileNames.log(number));
        }
        report.accept("repaired: tables=" + tables.size() + ", entries=" + entries(tables)
                + (areLevelsKept ? "" : ", all in level 0"));
    }

    /// One entry, for a [RunWriter].
    private record EntryAt(long keyAddress, int keyLength, long valueAddress, int valueLength)
            implements EntryIterator {
        @Override
        public boolean next() {
            return false;
        }

        @Override
        public void close() {}
    }
}
