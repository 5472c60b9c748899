package kv.lsm.disk;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;

/// Pages of a mapped file that lie on the disk and not in memory: who reads one waits in a fault, once.
public final class ColdPages implements AutoCloseable {
    /// So far from each other that no read brings in two.
    private static final int STRIDE_BYTES = 64 * Allocator.PAGE_BYTES;

    private final ReadFile file;
    private final long address;
    private final int pages;

    /// Skips the test where `directory` is in memory.
    public ColdPages(Path directory, int pages) throws IOException {
        ForgetfulFiles.assumeIn(directory);
        this.pages = pages;
        Disk disk = new RealDisk(new Allocator());
        Path path = directory.resolve("cold");
        try (WriteFile write = disk.create(path)) {
            write.write(ByteBuffer.allocate(pages * STRIDE_BYTES));
            write.sync();
        }
        file = disk.open(path);
        address = file.map();
        file.expectRandomReads(file.bytes(), true);
        disk.dropCached(path);
    }

    /// Reads a byte of each page; a number that is made of them.
    public int read() {
        int sum = 0;
        for (int i = 0; i < pages; i++) {
            sum += Memory.getByte(address + (long) i * STRIDE_BYTES);
        }
        return sum;
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
