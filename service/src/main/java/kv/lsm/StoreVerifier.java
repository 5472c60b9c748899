package kv.lsm;

import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.function.Consumer;
import kv.lsm.disk.FileCopy;
import kv.lsm.table.TableInspection;

/// Reads every byte of a closed store that means anything: each edit of the manifest, each block of each table,
/// each record of each log. Changes nothing.
public final class StoreVerifier {
    private final ClosedStore store;
    private final Consumer<Finding> findings;
    private long problems;
    private long entries;
    private long records;

    /// @param findings called for each line as soon as it is known
    public StoreVerifier(ClosedStore store, Consumer<Finding> findings) {
        this.store = store;
        this.findings = findings;
    }

    /// How many problems there are.
    public long run() throws IOException {
        ManifestInspection manifest = ManifestInspection.of(store);
        manifest.findings().forEach(this::tell);
        store.inTheWay.forEach((name, kind) -> tell(Finding.problem(name, StoreDirectory.noFile(kind))));
        for (TableMetadata table : manifest.tables().values()) {
            String name = FileNames.table(table.number());
            if (store.tables.contains(table.number())) {
                check(table, inspect(name));
            } else {
                tell(Finding.problem(name, store.files.missing("a table", name)));
            }
        }
        for (long number : store.tables) {
            if (!manifest.tables().containsKey(number)) {
                unreferenced(FileNames.table(number), manifest.isComplete() || manifest.hasRemoved(number));
            }
        }
        if (store.files.nextNumber() > FileNames.NUMBER_MAX) {
            tell(Finding.problem(store.files.directory().toString(), StoreFiles.noNumbers()));
        }
        logs(manifest);
        return problems;
    }

    /// What was read, for people.
    public String summary() {
        return "tables=" + store.tables.size() + ", entries=" + entries + ", logs=" + store.logs.size() + ", records="
                + records + ", problems=" + problems;
    }

    private void tell(Finding finding) {
        problems += finding.isProblem() ? 1 : 0;
        findings.accept(finding);
    }

    private TableInspection.Result inspect(String name) throws IOException {
        TableInspection.Result found = TableInspection.inspect(
                store.files.disk(),
                store.path(name),
                store.files.allocator(),
                (key, keyLength, value, valueLength) -> {});
        found.problems().forEach(problem -> tell(Finding.problem(name, problem.offset(), problem.text())));
        entries += found.entries();
        return found;
    }

    private void check(TableMetadata wanted, TableInspection.Result found) throws IOException {
        if (!found.problems().isEmpty()) {
            return;
        }
        String name = FileNames.table(wanted.number());
        wanted.differences(found, Files.size(store.path(name)))
                .forEach(difference ->
                        tell(Finding.problem(name, "not the table that the manifest names: " + difference)));
    }

    private void unreferenced(String name, boolean isKnown) throws IOException {
        if (isKnown) {
            tell(Finding.note(name, "not part of the store; the next opening removes it"));
        } else {
            tell(Finding.problem(name, "the manifest does not say whether this table is part of the store"));
            inspect(name);
        }
    }

    private void logs(ManifestInspection manifest) throws IOException {
        List<Long> needed = store.logs.stream()
                .filter(number -> number >= manifest.firstLog())
                .toList();
        store.logs
                .headSet(manifest.firstLog())
                .forEach(number ->
                        tell(Finding.note(FileNames.log(number), "no longer needed; the next opening removes it")));
        if (!areReadable(needed)) {
            return;
        }
        try {
            LogReplay.Result replayed = LogReplay.run(store.files, needed, manifest.firstLog());
            replayed.memtables().forEach(Memtable::release);
            records = replayed.records();
            replayed.notLogs().forEach(number -> tell(Finding.problem(FileNames.log(number), LogReplay.NO_LOG)));
            if (replayed.droppedBytes() > 0) {
                tell(Finding.note(
                        "*.log",
                        "torn end, never made durable, which the next opening drops: bytes="
                                + replayed.droppedBytes()));
            }
        } catch (CorruptionException e) {
            tell(Finding.problem(e.file().getFileName().toString(), e.byteOffset(), e.problem()));
        } catch (InternalError e) {
            tell(Finding.problem("*.log", "a page of a log cannot be read: " + e.getMessage()));
        }
    }

    private boolean areReadable(List<Long> logs) throws IOException {
        boolean all = true;
        for (long number : logs) {
            String name = FileNames.log(number);
            try (FileCopy copy = FileCopy.of(store.files.disk(), store.path(name), store.files.allocator())) {
                copy.gaps().forEach(gap -> tell(Finding.problem(name, gap.offset(), gap.toString())));
                all &= copy.gaps().isEmpty();
            }
        }
        return all;
    }
}
