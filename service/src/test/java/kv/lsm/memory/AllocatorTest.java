package kv.lsm.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Native memory is zeroed, counted, and given back to the system.
class AllocatorTest {
    private static final Path RESIDENT = Path.of("/proc/self/smaps_rollup");
    private static final long PIECE_BYTES = 1 << 20;
    private static final int PIECES = 64;

    private final Allocator allocator = new Allocator();

    private static long anonymousBytes() throws IOException {
        return Files.readAllLines(RESIDENT).stream()
                .filter(line -> line.startsWith("Anonymous:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
                .sum();
    }

    @Test
    void whatWasFreedBetweenSmallPiecesThatStayIsNoLongerResident() throws IOException {
        assumeTrue(Files.isReadable(RESIDENT), "this system does not tell what is resident");
        long large = 32 * PIECE_BYTES - 8_192; // glibc would map what is smaller no more after this was freed
        allocator.free(allocator.allocate(large), large);
        List<Long> pieces = new ArrayList<>();
        List<Long> staying = new ArrayList<>();
        for (int i = 0; i < PIECES; i++) {
            long piece = allocator.allocate(PIECE_BYTES);
            Memory.fill(piece, PIECE_BYTES, (byte) 1);
            pieces.add(piece);
            staying.add(allocator.allocate(100));
        }
        long before = anonymousBytes();
        pieces.forEach(piece -> allocator.free(piece, PIECE_BYTES));
        assertThat(before - anonymousBytes()).isGreaterThan(PIECES / 2 * PIECE_BYTES);
        assertThat(allocator.allocatedBytes()).isEqualTo(PIECES * 100);
        staying.forEach(piece -> allocator.free(piece, 100));
        assertThat(allocator.allocatedBytes()).isZero();
    }

    @Test
    void whatIsAllocatedIsZeroAlsoWhereSomethingElseWasBefore() {
        for (long bytes : new long[] {16, 4_096, 100_000, PIECE_BYTES}) {
            for (int i = 0; i < 20; i++) {
                long address = i % 2 == 0 || bytes % Allocator.PAGE_BYTES != 0
                        ? allocator.allocate(bytes)
                        : allocator.allocateAligned(bytes);
                for (long at = 0; at < bytes; at++) {
                    assertThat(Memory.getByte(address + at)).isZero();
                }
                Memory.fill(address, bytes, (byte) 1);
                allocator.free(address, bytes);
            }
        }
    }
}
