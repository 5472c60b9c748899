package kv.lsm;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import kv.lsm.table.SSTable;
import kv.lsm.table.TableInspection;

/// A table as the manifest knows it.
///
/// @param number of the file
/// @param level 0 is the newest
/// @param run tables of one level and run do not overlap; in level 0 a higher run is newer, other levels have
/// run 0 only
/// @param bytes size of the file
public record TableMetadata(
        long number, int level, long run, long bytes, long entries, long tombstones, byte[] smallest, byte[] largest) {

    TableMetadata movedTo(int newLevel, long newRun) {
        return new TableMetadata(number, newLevel, newRun, bytes, entries, tombstones, smallest, largest);
    }

    /// True when the key ranges, ends included, share a key.
    boolean overlaps(byte[] first, byte[] last) {
        return Arrays.compareUnsigned(smallest, last) <= 0 && Arrays.compareUnsigned(first, largest) <= 0;
    }

    /// What tells an open table from the one that this is about, of what is in memory of it; nothing when it may
    /// be that one.
    List<String> differences(SSTable table) {
        List<String> differences = differencesOfSize(table.fileBytes(), table.entries());
        byte[] first = table.smallest();
        if (!Arrays.equals(first, smallest)) {
            differences.add("first key: manifest=" + Escaped.of(smallest) + ", file=" + Escaped.of(first));
        }
        return differences;
    }

    /// What tells a whole table from the one that this is about; nothing when it is that one.
    ///
    /// @param fileBytes size of its file
    List<String> differences(TableInspection.Result found, long fileBytes) {
        List<String> differences = differencesOfSize(fileBytes, found.entries());
        if (found.tombstones() != tombstones) {
            differences.add("tombstones: manifest=" + tombstones + ", file=" + found.tombstones());
        }
        if (!Arrays.equals(found.smallestOrNull(), smallest) || !Arrays.equals(found.largestOrNull(), largest)) {
            differences.add("bounds: manifest=" + Escaped.of(smallest) + " to " + Escaped.of(largest) + ", file="
                    + Escaped.of(found.smallestOrNull()) + " to " + Escaped.of(found.largestOrNull()));
        }
        return differences;
    }

    private List<String> differencesOfSize(long fileBytes, long fileEntries) {
        List<String> differences = new ArrayList<>();
        if (fileBytes != bytes) {
            differences.add("bytes: manifest=" + bytes + ", file=" + fileBytes);
        }
        if (fileEntries != entries) {
            differences.add("entries: manifest=" + entries + ", file=" + fileEntries);
        }
        return differences;
    }

    /// File name, also in messages.
    @Override
    public String toString() {
        return FileNames.table(number) + " (level " + level + ", run " + run + ")";
    }
}
