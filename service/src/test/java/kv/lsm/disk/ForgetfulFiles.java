package kv.lsm.disk;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import kv.lsm.memory.Allocator;

/// Whether a directory is on a disk and not in memory, whose files the page cache cannot forget.
public final class ForgetfulFiles {
    private static final int BYTES = 1 << 16;

    private ForgetfulFiles() {}

    /// Skips the test where it cannot tell anything.
    public static void assumeIn(Path directory) throws IOException {
        Disk disk = new RealDisk(new Allocator());
        Path path = directory.resolve("forgotten");
        try (WriteFile file = disk.create(path)) {
            file.write(ByteBuffer.allocate(BYTES));
            file.sync();
        }
        disk.dropCached(path);
        try (ReadFile file = disk.open(path)) {
            file.map();
            assumeTrue(!file.isCached(0, BYTES), "a file system that forgets no pages: directory=" + directory);
        }
        disk.delete(path);
    }
}
