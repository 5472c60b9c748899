package kv.lsm;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.stream.Collectors;
import kv.lsm.disk.Closing;
import kv.lsm.log.WriteAheadLogFormat;
import kv.lsm.memory.RefCounted;
import kv.lsm.table.SSTable;

/// How a store begins: from the files that an earlier process left in its directory, whether it stopped in order
/// or was killed at any point, to the view and the manifest that [LsmStore] goes on with.
///
/// ```
/// manifest ─► tables it names ─► logs, replayed into memtables ─► a new log
///          ─► a new manifest, durable ─► files that belong to nothing are deleted
/// ```
///
/// 1. Nothing is deleted before a new manifest is durable: until then the old one may be what the next opening
///    finds, and every file that it names must be there. A manifest that was only read proves nothing: its last
///    edit, or the rename that put it there, may be in the page cache alone.
/// 2. What no crash can leave behind is refused, not cleaned away: a file that is missing, a table without a
///    manifest. Nothing is changed before all of that was looked at.
/// 3. For one opening, by one thread: made, run and forgotten.
final class StoreOpening {
    /// What the store continues with.
    ///
    /// @param view with a new active memtable
    /// @param manifest new, with one edit that tells the version
    record Result(ReadView view, Manifest manifest, StoreMetrics.Recovery recovery) {}

    private static final System.Logger LOGGER = System.getLogger(StoreOpening.class.getName());

    private final StoreFiles files;
    private final LogSupply logs;
    /// what the manifest found tells; of a new store, nothing
    private Version version = Version.EMPTY;
    /// logs below this number are in tables already
    private long firstLog;
    /// the manifest says that the first log was a file, so that it may not be missing
    private boolean firstLogExists;

    StoreOpening(StoreFiles files, LogSupply logs) {
        this.files = files;
        this.logs = logs;
    }

    /// Does all of it. The directory is locked, and what is returned is the caller's to release.
    ///
    /// @throws CorruptionException when a file that is needed is missing or damaged
    Result open() throws IOException {
        long start = System.nanoTime();
        StoreDirectory found = StoreDirectory.of(files.disk(), files.directory());
        found.reserveNumbers(files); // the new log is made before leftovers are deleted by their names
        requireNothingInTheWay(found);
        List<String> names = found.files();
        boolean isNew = !names.contains(FileNames.MANIFEST);
        if (isNew) {
            requireNoTables(names);
        } else {
            readManifest();
        }
        requireNamedFiles(names);
        List<Long> logNumbers = logNumbers(names);
        List<RefCounted> owned = new ArrayList<>();
        try {
            Map<Long, SSTable> tables = openTables(owned);
            LogReplay.Result replayed = LogReplay.run(files, logNumbers, firstLog);
            owned.addAll(replayed.memtables());
            if (isNew) {
                requireEmptyLogs(replayed);
            }
            requireLogs(replayed);
            if (!replayed.closedInOrder()) {
                makeDurable(replayed.memtables());
            }
            Memtable active = firstMemtable(replayed.memtables());
            owned.add(active);
            Manifest manifest;
            try {
                manifest = replaceManifest(replayed.memtables(), active);
                try {
                    removeUnreferenced(names, replayed.worthless());
                } catch (IOException | RuntimeException | InternalError e) {
                    Closing.quietly(manifest::close, FileNames.MANIFEST);
                    throw e;
                }
            } catch (IOException | RuntimeException | InternalError e) {
                giveBackLog(active.logNumber());
                throw e;
            }
            ReadView view = new ReadView(active, replayed.memtables().reversed(), version, tables);
            StoreMetrics.Recovery recovery = new StoreMetrics.Recovery(
                    replayed.memtables().size(),
                    replayed.records(),
                    replayed.droppedBytes(),
                    Duration.ofNanos(System.nanoTime() - start));
            return new Result(view, manifest, recovery);
        } finally {
            owned.forEach(RefCounted::release); // the view has its own hold
        }
    }

    private void readManifest() throws IOException {
        Manifest.Content content = Manifest.read(files.disk(), files.directory(), files.allocator());
        for (VersionEdit edit : content.edits()) {
            try {
                version = version.apply(edit);
            } catch (IllegalStateException e) {
                throw new CorruptionException(files.path(FileNames.MANIFEST), 0, e.getMessage());
            }
            firstLog = edit.firstLog();
            firstLogExists = edit.logged();
            files.startNumbersAt(edit.nextNumber());
        }
    }

    private void requireNothingInTheWay(StoreDirectory found) {
        found.inTheWay().forEach((name, kind) -> {
            throw new CorruptionException(
                    files.path(name),
                    0,
                    StoreDirectory.noFile(kind) + "; nothing was changed: if it stands for a file of the store, put "
                            + "that back; if not, move it away");
        });
    }

    /// A first opening that was interrupted leaves logs without a record and temporary files: the manifest is
    /// durable before there can be more.
    private void requireNoTables(List<String> names) {
        names.stream()
                .filter(name -> FileNames.tableNumber(name).isPresent())
                .min(String::compareTo)
                .ifPresent(this::refuseWithoutManifest);
    }

    private void requireEmptyLogs(LogReplay.Result replayed) {
        replayed.withContent().stream().map(FileNames::log).findFirst().ifPresent(this::refuseWithoutManifest);
    }

    /// What no crash can have left is not deleted as worthless.
    private void requireLogs(LogReplay.Result replayed) {
        replayed.notLogs().stream().map(FileNames::log).findFirst().ifPresent(name -> {
            throw new CorruptionException(
                    files.path(name),
                    0,
                    LogReplay.NO_LOG + "; nothing was changed: if it is not the store's, move it away; if it "
                            + "is, it is damaged, and kv.Tool repair keeps the rest");
        });
    }

    private void refuseWithoutManifest(String name) {
        throw new CorruptionException(
                files.path(FileNames.MANIFEST),
                0,
                "the manifest is missing, but there is data: file=" + name
                        + "; nothing was changed: put the manifest back, or choose an empty directory");
    }

    /// All that the manifest names is here.
    private void requireNamedFiles(List<String> names) {
        Set<String> present = Set.copyOf(names);
        for (TableMetadata table : version.tables()) {
            String name = FileNames.table(table.number());
            if (!present.contains(name)) {
                throw new CorruptionException(files.path(name), 0, files.missing("a table", name));
            }
        }
        if (firstLogExists && !present.contains(FileNames.log(firstLog))) {
            String name = FileNames.log(firstLog);
            throw new CorruptionException(files.path(name), 0, files.missing("a write-ahead log", name));
        }
    }

    /// Of the logs to be replayed, oldest first.
    private List<Long> logNumbers(List<String> names) {
        return names.stream()
                .map(FileNames::logNumber)
                .filter(OptionalLong::isPresent)
                .map(OptionalLong::getAsLong)
                .filter(number -> number >= firstLog)
                .sorted()
                .toList();
    }

    private Map<Long, SSTable> openTables(List<RefCounted> owned) throws IOException {
        Map<Long, SSTable> tables = new HashMap<>();
        for (TableMetadata metadata : version.tables()) {
            SSTable table = files.openTable(metadata.number());
            owned.add(table);
            tables.put(metadata.number(), table);
            List<String> differences = metadata.differences(table);
            if (!differences.isEmpty()) {
                throw new CorruptionException(
                        table.path(), 0, "not the table that the manifest names: " + String.join("; ", differences));
            }
        }
        return tables;
    }

    /// Deletes what no manifest names any more: leftovers of a flush, a merge or an opening that was interrupted.
    /// Those that cannot be deleted take room and do no harm. Not so a worthless log, which the next opening would
    /// take for one of this store's.
    private void removeUnreferenced(List<String> names, List<Long> worthlessLogs) throws IOException {
        List<String> unneeded = new ArrayList<>();
        Set<Long> tables = version.tables().stream().map(TableMetadata::number).collect(Collectors.toSet());
        for (String name : names) {
            OptionalLong table = FileNames.tableNumber(name);
            OptionalLong log = FileNames.logNumber(name);
            boolean deadTable = table.isPresent() && !tables.contains(table.getAsLong());
            boolean deadLog = log.isPresent() && log.getAsLong() < firstLog;
            if (log.isPresent() && worthlessLogs.contains(log.getAsLong())) {
                files.delete(name);
            } else if (deadTable || deadLog || FileNames.isTemporary(name)) {
                unneeded.add(name);
            }
        }
        files.deleteUnneeded(unneeded.toArray(String[]::new));
        files.disk().syncDirectory(files.directory());
    }

    /// A record of the new log that says it is durable implies that the logs before are, too.
    private void makeDurable(List<Memtable> replayed) throws IOException {
        for (Memtable memtable : replayed) {
            files.disk().rewrite(files.path(FileNames.log(memtable.logNumber())), memtable.indexedEnd());
        }
    }

    /// The one that the first writes go to. Its log names the last one before it, and where that ended.
    private Memtable firstMemtable(List<Memtable> replayed) throws IOException {
        long before = replayed.isEmpty() ? 0 : replayed.getLast().logNumber();
        long end = replayed.isEmpty() ? 0 : replayed.getLast().indexedEnd();
        try {
            return logs.memtable(number -> new WriteAheadLogFormat.Header(number, before, end));
        } catch (IOException e) {
            LogSupply.Failed log = logs.failedOrNull();
            long usable = files.usableBytes();
            if (log == null || usable >= log.bytes()) {
                throw e;
            }
            throw new IOException(
                    "no room for a new log: bytes_needed=" + log.bytes() + ", bytes_usable=" + usable + ", reason="
                            + StoreException.reasonOf(e) + "; free the disk, or start with a smaller --memtable-bytes",
                    e);
        }
    }

    /// Deletes the new log, or each start that fails would leave one more of full size; not where the manifest that
    /// is in place names it, or cannot be read.
    private void giveBackLog(long number) {
        try {
            if (files.options().wal() != WalMode.NONE && !isNamed(number)) {
                files.deleteUnneeded(FileNames.log(number));
            }
        } catch (IOException | RuntimeException e) { // the next start that goes well deletes it
            LOGGER.log(System.Logger.Level.DEBUG, "the log of a start that failed could not be deleted", e);
        }
    }

    private boolean isNamed(long log) throws IOException {
        if (!files.disk().list(files.directory()).contains(FileNames.MANIFEST)) {
            return false;
        }
        Manifest.Content manifest = Manifest.read(files.disk(), files.directory(), files.allocator());
        return manifest.edits().getLast().firstLog() == log;
    }

    /// A new manifest of one edit, in place of the one that was found.
    private Manifest replaceManifest(List<Memtable> replayed, Memtable active) throws IOException {
        boolean logged = !replayed.isEmpty() || files.options().wal() != WalMode.NONE;
        long first =
                replayed.isEmpty() ? active.logNumber() : replayed.getFirst().logNumber();
        return Manifest.replace(
                files.disk(),
                files.directory(),
                new VersionEdit(first, logged, files.nextNumber(), List.of(), version.tables()));
    }
}
