package kv.lsm.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.SplittableRandom;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileCopyTest {
    private static final int PAGE = Allocator.PAGE_BYTES;
    /// several pieces and a part of a page
    private static final int BYTES = 200 * PAGE + 77;

    private final Allocator allocator = new Allocator();
    private final Disk disk = new RealDisk(allocator);

    @TempDir
    private Path directory;

    private Path write(int bytes) throws Exception {
        byte[] content = new byte[bytes];
        new SplittableRandom(1).nextBytes(content);
        return Files.write(directory.resolve("file"), content);
    }

    private static byte[] content(FileCopy copy) throws Exception {
        return Memory.copyOf(copy.reader().map(), (int) copy.reader().bytes());
    }

    @Test
    void aFileThatCanBeReadIsCopiedWhole() throws Exception {
        for (int bytes : new int[] {0, 1, PAGE, BYTES}) {
            Path file = write(bytes);
            try (FileCopy copy = FileCopy.of(disk, file, allocator)) {
                assertThat(copy.gaps()).isEmpty();
                assertThat(content(copy)).isEqualTo(Files.readAllBytes(file));
            }
        }
        assertThat(allocator.allocatedBytes()).isZero();
    }

    @Test
    void pagesThatCannotBeReadAreZerosAndAllOthersAreThere() throws Exception {
        Path file = write(BYTES);
        byte[] wanted = Files.readAllBytes(file);
        Arrays.fill(wanted, 0, PAGE, (byte) 0);
        Arrays.fill(wanted, 70 * PAGE, 72 * PAGE, (byte) 0);
        Arrays.fill(wanted, 200 * PAGE, BYTES, (byte) 0);
        Disk bad = new BadPagesDisk(disk, "file", 0, 70, 71, 200);
        try (FileCopy copy = FileCopy.of(bad, file, allocator)) {
            assertThat(content(copy)).isEqualTo(wanted);
            assertThat(copy.gaps())
                    .extracting(FileCopy.Gap::offset, FileCopy.Gap::bytes)
                    .containsExactly(tuple(0L, (long) PAGE), tuple(70L * PAGE, 2L * PAGE), tuple(200L * PAGE, 77L));
        }
        assertThat(allocator.allocatedBytes()).isZero();
    }
}
