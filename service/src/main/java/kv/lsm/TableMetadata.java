package kv.lsm;

import java.util.Arrays;

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

    /// File name, also in messages.
    @Override
    public String toString() {
        return FileNames.table(number) + " (level " + level + ", run " + run + ")";
    }
}
