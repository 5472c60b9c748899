package kv.lsm.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ChecksumTest {
    private static final int BYTES = 40_000;

    @TempDir
    Path directory;

    @Test
    void aMappedFileHasTheChecksumOfItsBytes() {
        byte[] content = new byte[BYTES];
        new SplittableRandom(1).nextBytes(content);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(BYTES).copyFrom(MemorySegment.ofArray(content));
            for (int bytes : new int[] {0, 1, 40, 8191, 8192, 8193, 16_384, BYTES}) {
                assertThat(Checksum.ofMapped(memory.address(), bytes))
                        .as("%d bytes", bytes)
                        .isEqualTo(Checksum.of(memory.address(), bytes));
            }
        }
    }

    /// As a replay meets it that reads a log whose page the disk cannot give.
    @Test
    void aPageThatCannotBeReadIsAnErrorAndNoSignal() throws Exception {
        Path file = Files.write(directory.resolve("log"), new byte[BYTES]);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE);
                Arena arena = Arena.ofConfined()) {
            MemorySegment mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, BYTES, arena);
            for (int i = 0; i < 30_000; i++) { // compiled
                Checksum.ofMapped(mapped.address(), 100);
            }
            channel.truncate(0);
            for (int bytes : new int[] {100, 8192, BYTES}) {
                assertThatThrownBy(() -> Checksum.ofMapped(mapped.address(), bytes))
                        .isInstanceOf(InternalError.class);
            }
        }
    }
}
