package kv.lsm.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.nio.file.ExtendedOpenOption;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The real page cache, as far as this machine has one that forgets: a file system in memory does not.
class PageCacheTest {
    private static final int BYTES = (1 << 20) + 100;

    @TempDir
    private Path directory;

    private final Allocator allocator = new Allocator();
    private final Disk disk = new RealDisk(allocator);
    private final byte[] content = new byte[BYTES];
    private final long room = allocator.allocateAligned(1 << 20);
    private Path path;
    private ReadFile file;

    @BeforeEach
    void writeDurably() throws IOException {
        ForgetfulFiles.assumeIn(directory);
        new SplittableRandom(1).nextBytes(content);
        path = directory.resolve("file");
        try (WriteFile write = disk.create(path)) {
            write.write(ByteBuffer.wrap(content));
            write.sync();
        }
        file = disk.open(path);
    }

    @AfterEach
    void close() throws IOException {
        file.close();
        allocator.free(room, 1 << 20);
        assertThat(allocator.allocatedBytes()).isZero();
    }

    @Test
    void whatWasWrittenIsInMemoryUntilItIsDropped() throws IOException {
        file.map();
        assertThat(file.isCached(0, BYTES)).isTrue();
        disk.dropCached(path);
        file.read(BYTES / 2, room, 10);
        assertThat(file.isCached(BYTES / 2, 10)).isTrue();
        assertThat(file.isCached(0, 1))
                .as("a small read brings nothing from afar")
                .isFalse();
    }

    /// By another name of it, as a checkpoint has, one sees what is in memory.
    @Test
    void aFileThatIsClosedLeavesMemoryOnlyWhenItIsDeleted() throws IOException {
        Path large = directory.resolve("large");
        byte[] bytes = new byte[(5 << 20) + 100]; // several pieces and a part of a page
        new SplittableRandom(2).nextBytes(bytes);
        try (WriteFile write = disk.create(large)) {
            write.write(ByteBuffer.wrap(bytes));
            write.sync();
        }
        Path other = Files.createLink(directory.resolve("other"), large);
        readMapped(large, false);
        assertThat(isCached(other, 0, bytes.length))
                .as("it may be opened again")
                .isTrue();
        readMapped(large, true);
        for (long position : new long[] {0, 2 << 20, 4 << 20, bytes.length - 1}) {
            assertThat(isCached(other, position, 1)).isFalse();
        }
        assertThat(other).hasBinaryContent(bytes);
    }

    private void readMapped(Path path, boolean delete) throws IOException {
        try (ReadFile read = disk.open(path)) {
            Memory.getByte(read.map());
            if (delete) {
                read.willBeDeleted();
                disk.delete(path);
            }
        }
    }

    private boolean isCached(Path path, long position, long bytes) throws IOException {
        try (ReadFile read = disk.open(path)) {
            read.map();
            return read.isCached(position, bytes);
        }
    }

    @Test
    void aFaultBringsOnePageWhereRandomReadsAreExpected() throws IOException {
        long address = file.map();
        file.expectRandomReads(BYTES, true);
        disk.dropCached(path);
        assertThat(Memory.getByte(address + BYTES / 2)).isEqualTo(content[BYTES / 2]);
        assertThat(file.isCached(BYTES / 2, 1)).isTrue();
        assertThat(file.isCached(BYTES / 2 + 2 * Allocator.PAGE_BYTES, 1)).isFalse();
    }

    @Test
    void aLongRangeIsInMemoryOnlyWhenAllOfItIs() throws IOException {
        long address = file.map();
        file.expectRandomReads(BYTES, true);
        disk.dropCached(path);
        int pages = BYTES / Allocator.PAGE_BYTES;
        for (int page = 0; page < pages; page++) { // not the last one, which is not whole
            touch(address, page);
        }
        assertThat(file.isCached(0, BYTES - BYTES % Allocator.PAGE_BYTES)).isTrue();
        assertThat(file.isCached(0, BYTES)).isFalse();
        touch(address, pages);
        assertThat(file.isCached(0, BYTES)).isTrue();
    }

    private void touch(long address, int page) {
        int at = page * Allocator.PAGE_BYTES;
        assertThat(Memory.getByte(address + at)).isEqualTo(content[at]);
    }

    @Test
    void aFaultBehindWhatIsReadAtRandomBringsWhatLiesAround() throws IOException {
        long address = file.map();
        file.expectRandomReads(BYTES / 2, true);
        disk.dropCached(path);
        assertThat(Memory.getByte(address + BYTES - 1)).isEqualTo(content[BYTES - 1]);
        assertThat(file.isCached(BYTES - 3 * Allocator.PAGE_BYTES, 1)).isTrue();
    }

    /// With direct I/O or without: the last page of the file is not whole.
    @Test
    void aDirectFileGivesTheSameBytesAndLeavesThePageCacheAsItIs() throws IOException {
        file.map();
        disk.dropCached(path);
        int start = 3 * Allocator.PAGE_BYTES;
        try (ReadFile direct = disk.openDirect(path)) {
            assertThat(direct.bytes()).isEqualTo(BYTES);
            direct.read(start, room, 10_000);
            assertThat(Memory.copyOf(room, 10_000)).isEqualTo(part(start, 10_000));
            int last = BYTES & -Allocator.PAGE_BYTES;
            direct.read(last, room, BYTES - last);
            assertThat(Memory.copyOf(room, BYTES - last)).isEqualTo(part(last, BYTES - last));
            if (direct instanceof DirectReadFile) {
                assertThat(file.isCached(start, 1)).isFalse();
            }
            assertThatThrownBy(() -> direct.read(last, room, BYTES - last + 1)).isInstanceOf(EOFException.class);
        }
    }

    /// A file system without direct I/O.
    @Test
    void aFileThatIsOpenedAloneWithoutDirectIsReadThroughThePageCache() throws IOException {
        try (ReadFile read = DirectReadFile.open(path, (opened, options) -> {
            if (List.of(options).contains(ExtendedOpenOption.DIRECT)) {
                throw new FileSystemException(opened.toString(), null, "Invalid argument");
            }
            return new UninterruptedChannel(opened, options);
        })) {
            read.read(0, room, 10_000);
            assertThat(Memory.copyOf(room, 10_000)).isEqualTo(part(0, 10_000));
        }
    }

    /// Who asked tries again later.
    @Test
    void tooManyOpenFilesAreNotTakenForAFileSystemWithoutDirect() {
        assertThatThrownBy(() -> DirectReadFile.open(path, (opened, options) -> {
                    throw new FileSystemException(opened.toString(), null, "Too many open files");
                }))
                .isInstanceOf(FileSystemException.class)
                .hasMessageContaining("Too many open files");
    }

    private byte[] part(int from, int bytes) {
        return Arrays.copyOfRange(content, from, from + bytes);
    }
}
