package kv.lsm;

import java.io.IOException;
import java.util.List;

/// The one place where the set of tables changes: first in the manifest, then for readers, then old files are
/// deleted.
///
/// 1. Thread-safe; changes are made one after the other, each from the version that the one before left.
/// 2. An edit that could not be written, for want of room, may or may not be found on opening, until a later
///    change has put another manifest in place. So the tables that it names stay, whoever tries again has to
///    bring the same ones, and nothing is deleted that an older manifest names.
/// 3. Once the store has failed there are no more changes: a failed disk is left as it is.
final class Catalog {
    private static final System.Logger LOGGER = System.getLogger(Catalog.class.getName());
    /// From this size on the manifest is replaced by one with a single edit.
    private static final long MANIFEST_BYTES_MAX = 4 << 20;

    private final StoreFiles files;
    private final Views views;
    private final Failure failure;
    private Manifest manifest;
    private Version version;

    Catalog(StoreFiles files, Views views, Failure failure, Manifest manifest, Version version) {
        this.files = files;
        this.views = views;
        this.failure = failure;
        this.manifest = manifest;
        this.version = version;
    }

    synchronized Version version() {
        return version;
    }

    /// Links the tables of the present version, of which none is deleted meanwhile; that version.
    synchronized Version link(Checkpoint checkpoint) throws IOException {
        checkpoint.link(version);
        return version;
    }

    /// Publishes the tables of the oldest frozen memtable and deletes its log.
    ///
    /// @param written called when the manifest has it, before anyone sees it
    /// @throws IOException when nothing was published; it may be tried again unless the store has failed
    synchronized void flushed(Memtable memtable, List<NewTable> tables, Runnable written) throws IOException {
        Memtable next = views.current().memtablesOldestFirst().get(1);
        append(List.of(), metadata(tables), next);
        written.run();
        views.flushed(memtable, version, tables);
        if (isLogged(memtable)) {
            files.deleteUnneeded(FileNames.log(memtable.logNumber()));
        }
    }

    /// Publishes the result of a compaction and deletes the tables that it replaced. Throws what [#flushed] does.
    synchronized void compacted(List<TableMetadata> inputs, List<NewTable> outputs, Runnable written)
            throws IOException {
        append(inputs.stream().map(TableMetadata::number).toList(), metadata(outputs), oldestMemtable());
        written.run();
        views.compacted(version, outputs);
        files.deleteUnneeded(
                inputs.stream().map(input -> FileNames.table(input.number())).toArray(String[]::new));
    }

    /// Publishes that a table belongs to another level now. Throws what [#flushed] does.
    synchronized void moved(TableMetadata table, int level, Runnable written) throws IOException {
        append(List.of(table.number()), List.of(table.movedTo(level, 0)), oldestMemtable());
        written.run();
        views.compacted(version, List.of());
    }

    private Memtable oldestMemtable() {
        return views.current().memtablesOldestFirst().getFirst();
    }

    private boolean isLogged(Memtable memtable) {
        return memtable.isReplayed() || files.options().wal() != WalMode.NONE;
    }

    private static List<TableMetadata> metadata(List<NewTable> tables) {
        return tables.stream().map(NewTable::metadata).toList();
    }

    private void append(List<Long> removed, List<TableMetadata> added, Memtable firstNeeded) throws IOException {
        failure.checkQuietly();
        long firstLog = firstNeeded.logNumber();
        boolean logged = isLogged(firstNeeded);
        VersionEdit edit = new VersionEdit(firstLog, logged, files.nextNumber(), removed, added);
        Version next = version.apply(edit);
        try {
            if (manifest.isBroken() || manifest.bytes() > MANIFEST_BYTES_MAX) {
                replace(new VersionEdit(firstLog, logged, files.nextNumber(), List.of(), next.tables()));
            } else {
                manifest.append(edit);
            }
        } catch (LostSyncException | RuntimeException | Error e) {
            failure.set("the manifest could not be written", e); // before this object's lock lets the next change in
            throw e;
        }
        version = next;
    }

    private void replace(VersionEdit edit) throws IOException {
        Manifest old = manifest;
        old.giveUp(); // also if this fails: the other one may have its name by then
        manifest = Manifest.replace(files.disk(), files.directory(), edit, files::syncDirectory);
        try {
            old.close();
        } catch (IOException e) { // of a file that has no name any more
            LOGGER.log(System.Logger.Level.DEBUG, "an old manifest could not be closed", e);
        }
    }

    synchronized void close() throws IOException {
        manifest.close();
    }
}
