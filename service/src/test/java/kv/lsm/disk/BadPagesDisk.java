package kv.lsm.disk;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.SortedSet;
import java.util.TreeSet;
import kv.lsm.memory.Allocator;

/// The real disk, but some pages of one file cannot be read. A mapping of that file is a copy which was cut off
/// before the first of them: whoever touches it from there on gets the signal that such a page gives.
public final class BadPagesDisk extends ForwardingDisk {
    private static final int PAGE_BYTES = Allocator.PAGE_BYTES;

    private final String name;
    private final SortedSet<Integer> pages = new TreeSet<>();

    /// @param name of the file
    /// @param pages by number
    public BadPagesDisk(Disk disk, String name, Integer... pages) {
        super(disk);
        this.name = name;
        this.pages.addAll(java.util.List.of(pages));
    }

    @Override
    public ReadFile open(Path path) throws IOException {
        ReadFile file = super.open(path);
        return path.getFileName().toString().equals(name) ? new BadFile(path, file) : file;
    }

    private final class BadFile implements ReadFile {
        private final Path path;
        private final ReadFile file;
        private ReadFile mappedOrNull;

        BadFile(Path path, ReadFile file) {
            this.path = path;
            this.file = file;
        }

        @Override
        public long bytes() {
            return file.bytes();
        }

        @Override
        public long map() throws IOException {
            Path copy = Files.createTempFile("kv-bad-pages", ".copy");
            try {
                Files.copy(path, copy, StandardCopyOption.REPLACE_EXISTING);
                mappedOrNull = BadPagesDisk.super.open(copy);
                long address = mappedOrNull.map();
                try (FileChannel channel = FileChannel.open(copy, StandardOpenOption.WRITE)) {
                    channel.truncate((long) pages.first() * PAGE_BYTES);
                }
                return address;
            } finally {
                Files.delete(copy);
            }
        }

        @Override
        public void read(long position, long address, int bytes) throws IOException {
            int last = (int) ((position + bytes - 1) / PAGE_BYTES);
            if (!pages.subSet((int) (position / PAGE_BYTES), last + 1).isEmpty()) {
                throw new IOException("Input/output error");
            }
            file.read(position, address, bytes);
        }

        @Override
        public void close() throws IOException {
            if (mappedOrNull != null) {
                mappedOrNull.close();
            }
            file.close();
        }
    }
}
