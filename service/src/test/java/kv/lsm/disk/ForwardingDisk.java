package kv.lsm.disk;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import kv.lsm.TimeSlices;

/// Another disk, for tests that change what one or two of its calls do.
public class ForwardingDisk implements Disk {
    private final Disk disk;

    public ForwardingDisk(Disk disk) {
        this.disk = disk;
    }

    @Override
    public void createDirectory(Path directory) throws IOException {
        disk.createDirectory(directory);
    }

    @Override
    public List<String> list(Path directory) throws IOException {
        return disk.list(directory);
    }

    @Override
    public Kind kindOf(Path path) {
        return disk.kindOf(path);
    }

    @Override
    public LogFile createLog(Path file, long bytes, boolean direct, TimeSlices slices) throws IOException {
        return disk.createLog(file, bytes, direct, slices);
    }

    @Override
    public ReadFile open(Path file) throws IOException {
        return disk.open(file);
    }

    @Override
    public ReadFile openDirect(Path file) throws IOException {
        return disk.openDirect(file);
    }

    @Override
    public void dropCached(Path file) {
        disk.dropCached(file);
    }

    @Override
    public WriteFile create(Path file) throws IOException {
        return disk.create(file);
    }

    @Override
    public void rename(Path from, Path to) throws IOException {
        disk.rename(from, to);
    }

    @Override
    public void delete(Path file) throws IOException {
        disk.delete(file);
    }

    @Override
    public void rewrite(Path file, long bytes) throws IOException {
        disk.rewrite(file, bytes);
    }

    @Override
    public long usableBytes(Path directory) {
        return disk.usableBytes(directory);
    }

    @Override
    public void syncDirectory(Path directory) throws IOException {
        disk.syncDirectory(directory);
    }

    @Override
    public Closeable lock(Path file) throws IOException {
        return disk.lock(file);
    }
}
