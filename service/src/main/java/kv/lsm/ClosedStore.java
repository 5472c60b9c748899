package kv.lsm;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalLong;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import kv.lsm.disk.Disk;
import kv.lsm.disk.RealDisk;
import kv.lsm.memory.Allocator;

/// The directory of a store that no process has open, held so while a tool looks at it. Opening it changes
/// nothing but for the lock's file.
public final class ClosedStore implements Closeable {
    private final Closeable lock;
    final StoreFiles files;
    final SortedSet<Long> tables;
    final SortedSet<Long> logs;
    /// As [StoreDirectory#inTheWay].
    final SortedMap<String, Disk.Kind> inTheWay;

    private ClosedStore(Path directory, StoreDirectory found, Closeable lock, Allocator allocator, Disk disk) {
        this.lock = lock;
        files = new StoreFiles(disk, allocator, StoreOptions.at(directory));
        tables = numbers(found.files(), FileNames::tableNumber);
        logs = numbers(found.files(), FileNames::logNumber);
        inTheWay = new TreeMap<>(found.inTheWay());
        found.reserveNumbers(files);
    }

    /// @throws StoreLockedException when a process has the store open
    /// @throws StoreException       when the directory holds no file of a store
    public static ClosedStore open(Path directory) {
        Allocator allocator = new Allocator();
        return open(directory, new RealDisk(allocator), allocator);
    }

    /// As the other, on another disk.
    static ClosedStore open(Path directory, Disk disk, Allocator allocator) {
        try {
            StoreDirectory found = Files.isDirectory(directory) ? StoreDirectory.of(disk, directory) : null;
            if (found == null || found.files().stream().noneMatch(FileNames::isFinal)) {
                throw new StoreException("not the directory of a store: directory=" + directory);
            }
            Closeable lock = disk.lock(directory.resolve(FileNames.LOCK));
            if (lock == null) {
                throw new StoreLockedException(directory);
            }
            return new ClosedStore(directory, found, lock, allocator, disk);
        } catch (IOException e) {
            throw new StoreException(
                    "cannot open the store: directory=" + directory + ": " + StoreException.reasonOf(e), e);
        }
    }

    private static SortedSet<Long> numbers(List<String> names, Function<String, OptionalLong> number) {
        SortedSet<Long> numbers = new TreeSet<>();
        names.forEach(name -> number.apply(name).ifPresent(numbers::add));
        return numbers;
    }

    Path path(String name) {
        return files.path(name);
    }

    @Override
    public void close() {
        try {
            lock.close();
        } catch (IOException e) {
            throw new StoreException("the lock cannot be given back: directory=" + files.directory(), e);
        }
    }
}
