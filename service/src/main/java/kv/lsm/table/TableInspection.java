package kv.lsm.table;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import kv.lsm.CorruptionException;
import kv.lsm.ReadMode;
import kv.lsm.StoreException;
import kv.lsm.disk.Disk;
import kv.lsm.disk.FileCopy;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;

/// Reads all of a table that can be read, and says what cannot: for tools that look at a store while it is
/// closed.
///
/// Where the index is whole, the data blocks are those that it names. Where it is not, they are searched for
/// ([BlockScan]): a block starts at a multiple of 64 bytes and proves itself by its checksum. All of that looks
/// at a [FileCopy], so that a page which the disk cannot give is a damaged block or index like another. For one
/// thread.
public final class TableInspection {
    /// What is done with each readable entry, in key order.
    public interface Entries {
        void entry(long key, int keyLength, long value, int valueLength) throws IOException;
    }

    /// @param offset in the file
    /// @param text what is wrong
    /// @param losesKeys true when entries cannot be read
    /// @param afterOrNull the last readable key before them, null when they come first
    public record Problem(long offset, String text, boolean losesKeys, byte[] afterOrNull) {}

    /// @param largestOrNull null when no entry can be read
    public record Result(
            long entries, long tombstones, byte[] smallestOrNull, byte[] largestOrNull, List<Problem> problems) {}

    private final Disk disk;
    private final Path path;
    private final FileCopy copy;
    private final Allocator allocator;
    private final Entries consumer;
    private final List<Problem> problems = new ArrayList<>();
    private byte[] smallest;
    private byte[] largest;
    private long entries;
    private long tombstones;

    private TableInspection(Disk disk, Path path, FileCopy copy, Allocator allocator, Entries consumer) {
        this.disk = disk;
        this.path = path;
        this.copy = copy;
        this.allocator = allocator;
        this.consumer = consumer;
    }

    /// Reads the table from its first byte to its last.
    public static Result inspect(Disk disk, Path path, Allocator allocator, Entries consumer) throws IOException {
        try (FileCopy copy = FileCopy.of(disk, path, allocator)) {
            return new TableInspection(disk, path, copy, allocator, consumer).run();
        }
    }

    private Result run() throws IOException {
        copy.gaps().forEach(gap -> problem(gap.offset(), gap.toString(), false)); // the blocks tell what it loses
        SSTable table = openOrNull(ReadMode.MMAP, true);
        if (table == null) {
            table = openOrNull(ReadMode.PREAD, false); // which needs no hash index
        }
        if (table != null) {
            readByIndex(table);
        } else {
            scan();
        }
        return new Result(entries, tombstones, smallest, largest, List.copyOf(problems));
    }

    /// Null when its footer or an index is damaged.
    private SSTable openOrNull(ReadMode mode, boolean isTold) {
        try {
            return SSTable.open(disk, path, copy.reader(), mode, allocator);
        } catch (CorruptionException e) {
            if (isTold) {
                problem(e, false);
            }
        } catch (IOException | StoreException e) {
            if (isTold) {
                problem(0, "footer or index cannot be read: " + e.getMessage(), false);
            }
        }
        return null;
    }

    private void readByIndex(SSTable table) throws IOException {
        try (BlockBuffers buffers = new BlockBuffers(allocator);
                BlockBuffer buffer = new BlockBuffer(allocator)) {
            for (int block = 0; block < table.blocks(); block++) {
                long payload;
                try {
                    payload = table.load(block, buffer);
                } catch (CorruptionException e) {
                    problem(e, true);
                    continue;
                } catch (StoreException e) {
                    problem(table.blockStart(block), "a data block cannot be read: " + e.getMessage(), true);
                    continue;
                }
                readBlock(payload, table.blockStart(block), block, table, buffers);
            }
            if (problems.isEmpty() && entries != table.entries()) {
                problem(
                        0,
                        "the footer tells another number of entries: footer=" + table.entries() + ", found=" + entries,
                        false);
            }
        } finally {
            table.release();
        }
    }

    private void scan() throws IOException {
        try (BlockScan blocks = new BlockScan(copy.reader(), allocator)) {
            while (blocks.next()) {
                if (blocks.gapBytes() > 0) {
                    problem(
                            blocks.start() - blocks.gapBytes(),
                            "no readable data block: bytes=" + blocks.gapBytes(),
                            true);
                }
                readBlock(blocks.payload(), blocks.start(), -1, null, null);
            }
            if (entries == 0) {
                problem(0, "no readable data block in the whole file", true);
            } else if (blocks.mayHaveLostItsEnd()) {
                problem(blocks.end(), "where the data blocks end is unknown: later ones may be lost", true);
            }
        }
    }

    /// @param tableOrNull in which the entries are looked up as a get does, when nothing is known to be wrong
    /// with it
    private void readBlock(long payload, long start, int block, SSTable tableOrNull, BlockBuffers buffers)
            throws IOException {
        int count = DataBlock.count(payload);
        for (int i = 0; i < count; i++) {
            long entry = DataBlock.entry(payload, count, i);
            byte[] key = Memory.copyOf(DataBlock.keyAddress(entry), DataBlock.keyLength(entry));
            if (largest != null && Arrays.compareUnsigned(key, largest) <= 0) {
                problem(start, "keys are out of order: entry=" + i + " of the block", true);
                return; // what follows may be out of order, too
            }
            if (tableOrNull != null && problems.isEmpty()) {
                lookUp(tableOrNull, key, entry, block, buffers);
            }
            int valueLength = DataBlock.valueLength(entry);
            consumer.entry(
                    DataBlock.keyAddress(entry), key.length, DataBlock.valueAddress(entry, key.length), valueLength);
            smallest = smallest == null ? key : smallest;
            largest = key;
            entries++;
            tombstones += valueLength == EntryIterator.TOMBSTONE ? 1 : 0;
        }
    }

    private void lookUp(SSTable table, byte[] key, long entry, int block, BlockBuffers buffers) {
        String wrong = null;
        if (table.blockOf(key) != block) {
            wrong = "the index leads to another block";
        } else if (!table.mayContain(table.hashOf(key, Keys.hash(key)))) {
            wrong = "the filter rules out a key that is there";
        } else {
            try {
                byte[] found = table.get(key, table.hashOf(key, Keys.hash(key)), buffers);
                boolean deleted = DataBlock.valueLength(entry) == EntryIterator.TOMBSTONE;
                if (found == null || deleted != (found == SSTable.DELETED)) {
                    wrong = "a key that is there is not found";
                }
            } catch (CorruptionException e) {
                problem(e, false);
            }
        }
        if (wrong != null) {
            problem(table.blockStart(block), wrong, false);
        }
    }

    private void problem(CorruptionException e, boolean losesKeys) {
        problem(e.byteOffset(), e.problem(), losesKeys);
    }

    private void problem(long offset, String text, boolean losesKeys) {
        problems.add(new Problem(offset, text, losesKeys, largest));
    }
}
