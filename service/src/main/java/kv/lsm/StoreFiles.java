package kv.lsm;

import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import kv.lsm.disk.Disk;
import kv.lsm.disk.LinuxFileMemory;
import kv.lsm.memory.Allocator;
import kv.lsm.table.SSTable;
import kv.lsm.table.TableOptions;

/// Where the store's files are and how they are named and opened. Thread-safe.
final class StoreFiles {
    private final Disk disk;
    private final Allocator allocator;
    private final StoreOptions options;
    private final TableOptions tableOptions;
    private final MemoryFit fit;
    private final AtomicLong nextNumber = new AtomicLong(1);

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

    /// A file number not used before.
    long newNumber() {
        return nextNumber.getAndIncrement();
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
}
