package kv.lsm;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.List;
import kv.lsm.disk.WriteFile;

/// Tells tables that a cut-off repair has written from those that it found, where no manifest does: by their
/// numbers a rewritten old table would be taken for the newest. The file [FileNames#REPAIR] holds the first
/// number that the repair gives to a table; it is durable before there is such a table, and the next opening
/// removes it.
///
/// ```
/// 17 LF
/// ```
final class RepairMark {
    private final ClosedStore store;

    RepairMark(ClosedStore store) {
        this.store = store;
    }

    /// The tables of the repair before, all made of what is still here; none when it went through.
    List<Long> tablesOfCutOffRepair() throws IOException {
        if (!Files.exists(store.path(FileNames.REPAIR))) {
            return List.of();
        }
        String text = Files.readString(store.path(FileNames.REPAIR), StandardCharsets.ISO_8859_1);
        if (!text.matches("[0-9]{1,18}\n")) {
            return List.of(); // it was cut off before it wrote a table
        }
        return List.copyOf(store.tables.tailSet(Long.parseLong(text.strip())));
    }

    /// From now on tables are of this repair. Not before those of an earlier one have other names, durably.
    void set() throws IOException {
        try (WriteFile file = store.files.disk().create(store.path(FileNames.REPAIR))) {
            file.write(ByteBuffer.wrap((store.files.nextNumber() + "\n").getBytes(StandardCharsets.US_ASCII)));
            file.sync();
        }
        store.files.disk().syncDirectory(store.files.directory());
    }

    void remove() throws IOException {
        store.files.disk().delete(store.path(FileNames.REPAIR));
    }
}
