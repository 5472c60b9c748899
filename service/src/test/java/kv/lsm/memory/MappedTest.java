package kv.lsm.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MappedTest {
    private static final int BYTES = 8192;
    private static final int READS = 500;
    private static final int ROUNDS_TO_COMPILE = 400;

    /// Written, so that the compiler leaves no read out.
    static int seen;

    @TempDir
    Path directory;

    private static boolean failsInTime(long address) {
        try {
            int value = Memory.getInt(address);
            Mapped.throwPending();
            seen = value;
            return false;
        } catch (InternalError e) {
            return true;
        }
    }

    /// Many in one method, as the compiler sees a busy caller: without the poll the error comes after all of them.
    private static int failuresInTime(long address) {
        int failures = 0;
        for (int i = 0; i < READS; i++) {
            failures += failsInTime(address) ? 1 : 0;
        }
        return failures;
    }

    @Test
    void theErrorOfAPageThatIsGoneComesBeforeTheAnswerHoweverTheReadIsCompiled() throws Exception {
        Path file = directory.resolve("file");
        Files.write(file, new byte[BYTES]);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE);
                Arena arena = Arena.ofShared()) {
            long address =
                    channel.map(FileChannel.MapMode.READ_ONLY, 0, BYTES, arena).address();
            for (int round = 0; round < ROUNDS_TO_COMPILE; round++) {
                assertThat(failuresInTime(address)).isZero();
            }
            channel.truncate(0);
            for (int round = 0; round < 20; round++) {
                assertThat(failuresInTime(address)).isEqualTo(READS);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"100, 100, 200", "150, 100, 200", "200, 100, 200", "-5, -10, 0"})
    void whatEndsInsideIsLetThrough(long address, long begin, long end) {
        Mapped.requireWithin(address, begin, end);
    }

    @ParameterizedTest
    @CsvSource({"99, 100, 200", "201, 100, 200", "-1, 100, 200", "9223372036854775807, 100, 200"})
    void whatEndsElsewhereIsAPageThatCouldNotBeRead(long address, long begin, long end) {
        assertThatThrownBy(() -> Mapped.requireWithin(address, begin, end))
                .isInstanceOf(InternalError.class)
                .hasMessageContaining("could not be read");
    }
}
