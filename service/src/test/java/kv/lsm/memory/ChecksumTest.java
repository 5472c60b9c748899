package kv.lsm.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ChecksumTest {
    private static final int BYTES = 40_000;

    private int timesRight;

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

    /// A block of each new table is checked when it is first read: that left 4 KiB of garbage each time.
    @Test
    void aThreadUsesAgainWhatItCopiesInto() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        int blocks = 1_000;
        try (Arena arena = Arena.ofConfined()) {
            long address = arena.allocate(4096).address();
            Checksum.ofMapped(address, 4096);
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < blocks; i++) {
                Checksum.ofMapped(address, 4096);
            }
            assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(blocks * 4096 / 4);
        }
    }

    @Test
    void aVirtualThreadHasTheSameChecksumOfWhateverLength() throws Exception {
        byte[] content = new byte[BYTES];
        new SplittableRandom(2).nextBytes(content);
        try (Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(BYTES).copyFrom(MemorySegment.ofArray(content));
            for (int bytes : new int[] {0, 1, 8193, BYTES}) {
                AtomicInteger found = new AtomicInteger();
                Thread.ofVirtual()
                        .start(() -> found.set(Checksum.ofMapped(memory.address(), bytes)))
                        .join();
                assertThat(found.get()).as("%d bytes", bytes).isEqualTo(Checksum.of(memory.address(), bytes));
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
                MemorySegment good = arena.allocate(bytes).fill((byte) bytes);
                assertThat(Checksum.ofMapped(good.address(), bytes))
                        .as("the next block of the same thread")
                        .isEqualTo(Checksum.of(good.address(), bytes));
            }
        }
    }

    /// What its thread copies into holds its bytes of the last time then, and so its checksum.
    @Test
    void aPageThatCouldBeReadTheLastTimeIsNotTakenForReadAgain() throws Exception {
        byte[] content = new byte[4096];
        new SplittableRandom(3).nextBytes(content);
        Path file = Files.write(directory.resolve("table"), content);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE);
                Arena arena = Arena.ofConfined()) {
            long address = channel.map(FileChannel.MapMode.READ_ONLY, 0, content.length, arena)
                    .address();
            int right = Checksum.ofMapped(address, content.length);
            assertThat(timesRight(address, right, 30_000)).isEqualTo(30_000); // compiled
            channel.truncate(0);
            timesRight = 0;
            assertThatThrownBy(() -> timesRight(address, right, 30_000)).isInstanceOf(InternalError.class);
            assertThat(timesRight).isZero();
        }
    }

    private int timesRight(long address, int right, int times) {
        for (int i = 0; i < times; i++) {
            if (Checksum.ofMapped(address, 4096) == right) {
                timesRight++;
            }
        }
        return timesRight;
    }
}
