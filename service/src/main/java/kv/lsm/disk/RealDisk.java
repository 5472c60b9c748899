package kv.lsm.disk;

import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import kv.lsm.TimeSlices;
import kv.lsm.memory.Allocator;

/// The operating system's files.
public final class RealDisk implements Disk {
    private static final int PIECE_BYTES = 64 << 10;

    private static final Set<Path> LOCKED = ConcurrentHashMap.newKeySet();

    private final Allocator allocator;

    /// @param allocator gives the memory of direct logs
    public RealDisk(Allocator allocator) {
        this.allocator = allocator;
    }

    @Override
    public void createDirectory(Path directory) throws IOException {
        Path first = directory.toAbsolutePath().normalize();
        Path existing = first.getParent();
        while (existing != null && !Files.exists(existing)) {
            existing = existing.getParent();
        }
        Files.createDirectories(directory);
        // also what was there already: who made it may have died before it was durable
        for (Path parent = first.getParent(); parent != null; parent = parent.getParent()) {
            if (Files.isReadable(parent)) { // who may not read a directory cannot sync it
                syncDirectory(parent);
            }
            if (parent.equals(existing)) {
                return;
            }
        }
    }

    @Override
    public List<String> list(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(file -> file.getFileName().toString()).toList();
        }
    }

    @Override
    public Kind kindOf(Path path) {
        try {
            BasicFileAttributes found = Files.readAttributes(path, BasicFileAttributes.class);
            return found.isDirectory() ? Kind.DIRECTORY : found.isRegularFile() ? Kind.FILE : Kind.SPECIAL;
        } catch (AccessDeniedException e) {
            return Kind.FILE;
        } catch (IOException e) {
            return Files.isSymbolicLink(path) ? Kind.BROKEN_LINK : Kind.FILE;
        }
    }

    @Override
    public LogFile createLog(Path file, long bytes, boolean direct, TimeSlices slices) throws IOException {
        fillWithZeros(file, bytes, direct, slices);
        return direct ? new DirectLogFile(file, bytes, allocator) : new MappedLogFile(file, bytes);
    }

    /// Writes the zeros out instead of leaving a hole, so that a full disk shows here as an error and not later
    /// as a fault in the middle of a store to mapped memory, and so that a sync has no block to allocate.
    private static void fillWithZeros(Path file, long bytes, boolean sync, TimeSlices slices) throws IOException {
        try (UninterruptedChannel channel =
                new UninterruptedChannel(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            ByteBuffer zeros = ByteBuffer.allocateDirect((int) Math.min(bytes, PIECE_BYTES));
            for (long done = 0; done < bytes; ) {
                long position = done;
                done += channel.run(c ->
                        c.write(zeros.clear().limit((int) Math.min(bytes - position, zeros.capacity())), position));
                slices.checkTime();
            }
            if (sync) {
                force(channel);
            }
        }
    }

    private static void force(UninterruptedChannel channel) throws IOException {
        channel.run(c -> {
            c.force(true);
            return null;
        });
    }

    @Override
    public ReadFile open(Path file) throws IOException {
        return new ChannelReadFile(file);
    }

    @Override
    public ReadFile openDirect(Path file) throws IOException {
        return DirectReadFile.open(file);
    }

    @Override
    public void dropCached(Path file) {
        PageCache.drop(file);
    }

    @Override
    public WriteFile create(Path file) throws IOException {
        return new ChannelWriteFile(file);
    }

    @Override
    public void rename(Path from, Path to) throws IOException {
        Files.move(from, to, StandardCopyOption.ATOMIC_MOVE);
    }

    @Override
    public void delete(Path file) throws IOException {
        Files.deleteIfExists(file);
    }

    @Override
    public void rewrite(Path file, long bytes) throws IOException {
        try (UninterruptedChannel channel =
                new UninterruptedChannel(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer piece = ByteBuffer.allocateDirect((int) Math.min(bytes, PIECE_BYTES));
            for (long done = 0; done < bytes; ) {
                long position = done;
                done += channel.run(c -> {
                    if (c.read(piece.clear().limit((int) Math.min(bytes - position, piece.capacity())), position) < 0) {
                        throw new EOFException("file ends early: file=" + file + ", offset=" + position);
                    }
                    return c.write(piece.flip(), position);
                });
            }
            force(channel);
        }
    }

    @Override
    public long usableBytes(Path directory) {
        try {
            return Files.getFileStore(directory).getUsableSpace();
        } catch (IOException e) {
            return Long.MAX_VALUE; // whoever needs the room will see
        }
    }

    @Override
    public void syncDirectory(Path directory) throws IOException {
        try (UninterruptedChannel channel = opened(directory)) {
            force(channel);
        }
    }

    private static UninterruptedChannel opened(Path directory) throws SyncNotBegunException {
        try {
            return new UninterruptedChannel(directory, StandardOpenOption.READ);
        } catch (IOException e) {
            throw new SyncNotBegunException(e);
        }
    }

    /// Remembers what this process has locked: the operating system would tell a second store of the process
    /// that all is well, and closing the second one's channel would end the lock of the first.
    @Override
    public Closeable lock(Path file) throws IOException {
        if (kindOf(file) == Kind.SPECIAL) { // to open a pipe is to wait for its reader
            throw new IOException("the lock is no file, but " + Kind.SPECIAL + ": " + file);
        }
        Path known = file.toAbsolutePath().getParent().toRealPath().resolve(file.getFileName());
        if (!LOCKED.add(known)) {
            return null;
        }
        FileChannel channel = null;
        boolean taken = false;
        try {
            channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
            taken = channel.tryLock() != null;
        } finally {
            if (!taken) {
                release(known, channel);
            }
        }
        FileChannel locked = channel;
        return taken ? () -> release(known, locked) : null;
    }

    private static void release(Path known, FileChannel channelOrNull) throws IOException {
        try {
            if (channelOrNull != null) {
                channelOrNull.close();
            }
        } finally {
            LOCKED.remove(known);
        }
    }
}
