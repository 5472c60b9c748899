package kv.lsm;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import kv.lsm.disk.Disk;
import kv.lsm.disk.LinuxFileMemory;
import kv.lsm.disk.SyncNotBegunException;
import kv.lsm.memory.Allocator;
import kv.lsm.table.SSTable;
import kv.lsm.table.TableOptions;

/// Where the store's files are and how they are named and opened. Thread-safe.
final class StoreFiles {
    private static final System.Logger LOGGER = System.getLogger(StoreFiles.class.getName());

    private final Disk disk;
    private final Allocator allocator;
    private final StoreOptions options;
    private final TableOptions tableOptions;
    private final MemoryFit fit;
    /// Names of files that nothing needs and that could not be deleted yet. Guarded by itself.
    private final List<String> undeleted = new ArrayList<>();
    private final AtomicLong nextNumber = new AtomicLong(1);
    /// Why the directory is not synced any more, or null.
    private IOException lostSync;

    StoreFiles(Disk disk, Allocator allocator, StoreOptions options) {
        this.disk = disk;
        this.allocator = allocator;
        this.options = options;
        tableOptions = TableOptions.of(options);
        fit = new MemoryFit(options.tableMemoryBytes(), new LinuxFileMemory());
    }

    Disk disk() {
        return disk;
    }

    Allocator allocator() {
        return allocator;
    }

    StoreOptions options() {
        return options;
    }

    TableOptions tableOptions() {
        return tableOptions;
    }

    MemoryFit fit() {
        return fit;
    }

    /// What becomes of an access to a page of a mapped file that the disk could not give: Java throws
    /// InternalError for it.
    StoreException unreadablePage(InternalError e) {
        return new StoreException("a page of a mapped file could not be read: directory=" + directory(), e);
    }

    /// What is wrong where the manifest names a file that is not there.
    String missing(String what, String name) {
        boolean isDirectory = disk.kindOf(path(name)) == Disk.Kind.DIRECTORY;
        return what + " that the manifest names is missing" + (isDirectory ? ": a directory has its name" : "");
    }

    /// A file number not used before.
    ///
    /// @throws StoreException when none is left: a file of a higher one would not be found again
    long newNumber() {
        long number = nextNumber.getAndIncrement();
        if (number > FileNames.NUMBER_MAX) {
            throw new StoreException(noNumbers() + ": directory=" + directory());
        }
        return number;
    }

    /// What is wrong where no file number is left, and what helps.
    static String noNumbers() {
        return "no file number is left: move the file with the highest number away, " + FileNames.NUMBER_MAX
                + " being the last";
    }

    /// Makes sure that numbers below `number` are not given out.
    void startNumbersAt(long number) {
        nextNumber.accumulateAndGet(number, Math::max);
    }

    long nextNumber() {
        return nextNumber.get();
    }

    Path directory() {
        return options.directory();
    }

    Path path(String name) {
        return options.directory().resolve(name);
    }

    SSTable openTable(long number) throws IOException {
        SSTable table = SSTable.open(disk, path(FileNames.table(number)), options.read(), allocator);
        MemoryWatch.tell(table, fit.state());
        return table;
    }

    void delete(String name) throws IOException {
        disk.delete(path(name));
    }

    /// Deletes what no manifest names and nothing else needs. A file that cannot be deleted takes room and does no
    /// harm: it is tried again each time when others are deleted, and by the next start.
    void deleteUnneeded(String... names) {
        synchronized (undeleted) {
            undeleted.removeIf(name -> isDeleted(name, System.Logger.Level.DEBUG));
            for (String name : names) {
                if (!isDeleted(name, System.Logger.Level.WARNING)) {
                    undeleted.add(name);
                }
            }
        }
    }

    private boolean isDeleted(String name, System.Logger.Level level) {
        try {
            delete(name);
            return true;
        } catch (IOException e) {
            LOGGER.log(
                    level,
                    "a file that is not needed could not be deleted and is tried again: file=" + path(name)
                            + ", reason=" + StoreException.reasonOf(e));
            return false;
        }
    }

    /// Makes all names given and taken so far durable. After one failure there is no other: it may have lost
    /// names that another thread waits for, and a second sync would say that all is well.
    ///
    /// @throws LostSyncException when it could not
    /// @throws SyncNotBegunException when it was not tried: nothing is lost
    synchronized void syncDirectory() throws IOException {
        if (lostSync == null) {
            try {
                disk.syncDirectory(directory());
                return;
            } catch (SyncNotBegunException e) {
                throw e;
            } catch (IOException e) {
                lostSync = e;
            }
        }
        throw new LostSyncException("the directory", lostSync);
    }

    /// What the disk has room for, as far as it tells.
    long usableBytes() {
        return disk.usableBytes(directory());
    }
}
