package kv.lsm;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import kv.lsm.disk.FileCopy;
import kv.lsm.memory.Memory;

/// Reads all of a manifest that can be read: every edit that proves itself by its checksums, also behind
/// damaged ones.
///
/// @param edits in order
/// @param offsets of the edits in the file
/// @param tables by number, as the edits leave them when what does not fit is passed over
/// @param findings what is wrong
/// @param isComplete true when no edit is missing, so that [#tables] is the store
record ManifestInspection(
        List<VersionEdit> edits,
        List<Integer> offsets,
        Map<Long, TableMetadata> tables,
        List<Finding> findings,
        boolean isComplete) {

    static ManifestInspection of(ClosedStore store) throws IOException {
        Path path = store.path(FileNames.MANIFEST);
        List<Finding> findings = new ArrayList<>();
        if (store.inTheWay.containsKey(FileNames.MANIFEST) || !Files.exists(path)) {
            findings.add(Finding.problem(FileNames.MANIFEST, "the manifest is missing"));
            return new ManifestInspection(List.of(), List.of(), Map.of(), findings, false);
        }
        try (FileCopy copy = FileCopy.of(store.files.disk(), path, store.files.allocator())) {
            copy.gaps().forEach(gap -> findings.add(Finding.problem(FileNames.MANIFEST, gap.offset(), gap.toString())));
            byte[] content = Memory.copyOf(
                    copy.reader().map(), Math.toIntExact(copy.reader().bytes()));
            return of(
                            ByteBuffer.wrap(content).order(ByteOrder.LITTLE_ENDIAN),
                            findings,
                            copy.gaps().isEmpty())
                    .withoutItsEnd(store);
        }
    }

    /// A manifest that was cut off at the end of an edit looks whole, but names a log that is long gone, or tables
    /// that are, where others stand that no edit knows.
    private ManifestInspection withoutItsEnd(ClosedStore store) {
        if (!isComplete) {
            return this;
        }
        VersionEdit last = edits.getLast();
        boolean logMissing = last.logged() && !store.logs.contains(last.firstLog());
        boolean mayHaveMore = !findings.isEmpty() || store.tables.stream().anyMatch(number -> !knows(number));
        boolean tablesMissing = mayHaveMore && !store.tables.containsAll(tables.keySet());
        if (logMissing || tablesMissing) {
            findings.add(Finding.problem(
                    FileNames.MANIFEST,
                    (logMissing
                                    ? "the write-ahead log that it names is missing: " + FileNames.log(last.firstLog())
                                    : "tables that it names are missing")
                            + ": its last edits may be, too"));
            return new ManifestInspection(edits, offsets, tables, findings, false);
        }
        return this;
    }

    /// @param isAllRead false when a part of the file is missing
    private static ManifestInspection of(ByteBuffer file, List<Finding> findings, boolean isAllRead) {
        List<VersionEdit> edits = new ArrayList<>();
        List<Integer> offsets = new ArrayList<>();
        boolean complete = headerIsWhole(file, findings) && isAllRead;
        int lostAt = -1;
        for (int offset = ManifestFormat.HEADER_BYTES; offset < file.limit(); ) {
            int bytes = ManifestFormat.validRecordBytes(file, offset);
            if (bytes > 0) {
                if (lostAt >= 0) {
                    findings.add(Finding.problem(
                            FileNames.MANIFEST, lostAt, "an edit before valid ones does not match its checksum"));
                    complete = false;
                    lostAt = -1;
                }
                edits.add(ManifestFormat.edit(file, offset));
                offsets.add(offset);
                offset += bytes;
            } else {
                lostAt = offset;
                offset = ManifestFormat.nextValidOffset(file, offset);
            }
        }
        if (lostAt >= 0 && !edits.isEmpty() && ManifestFormat.isTorn(file, lostAt)) {
            findings.add(Finding.note(
                    FileNames.MANIFEST, "the last edit is torn, and was never in force: offset=" + lostAt));
        } else if (lostAt >= 0) {
            findings.add(Finding.problem(FileNames.MANIFEST, lostAt, "an edit does not match its checksum"));
            complete = false;
        }
        if (edits.isEmpty()) {
            findings.add(Finding.problem(FileNames.MANIFEST, "no edit can be read"));
            complete = false;
        }
        if (complete) {
            complete = editsFit(edits, findings);
        }
        return new ManifestInspection(edits, offsets, apply(edits), findings, complete);
    }

    private static boolean headerIsWhole(ByteBuffer file, List<Finding> findings) {
        boolean whole = file.limit() >= ManifestFormat.HEADER_BYTES
                && file.getLong(0) == ManifestFormat.MAGIC
                && file.getInt(8) == ManifestFormat.VERSION
                && file.getInt(12) == 0;
        if (!whole) {
            findings.add(Finding.problem(
                    FileNames.MANIFEST, 0, "this is not a manifest of version " + ManifestFormat.VERSION));
        }
        return whole;
    }

    private static boolean editsFit(List<VersionEdit> edits, List<Finding> findings) {
        Version version = Version.EMPTY;
        for (VersionEdit edit : edits) {
            try {
                version = version.apply(edit);
            } catch (IllegalStateException e) {
                findings.add(Finding.problem(FileNames.MANIFEST, e.getMessage()));
                return false;
            }
        }
        return true;
    }

    private static Map<Long, TableMetadata> apply(List<VersionEdit> edits) {
        Map<Long, TableMetadata> tables = new LinkedHashMap<>();
        for (VersionEdit edit : edits) {
            edit.removed().forEach(tables::remove);
            edit.added().forEach(table -> tables.put(table.number(), table));
        }
        return tables;
    }

    /// Logs below this number are not needed. Where edits are missing, more of them may not be.
    long firstLog() {
        return edits.stream().mapToLong(VersionEdit::firstLog).max().orElse(0);
    }

    /// True when an edit has taken the table out of the store for good.
    boolean hasRemoved(long number) {
        return !tables.containsKey(number)
                && edits.stream().anyMatch(edit -> edit.removed().contains(number));
    }

    private boolean knows(long number) {
        return tables.containsKey(number) || hasRemoved(number);
    }
}
