package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Callers may be interrupted at any time: Java closes the file of a channel whose thread is interrupted, the
/// store must not.
class InterruptionTest {
    @TempDir
    Path directory;

    private StoreOptions.Builder options() {
        return StoreOptions.at(directory).toBuilder().memtableBytes(64 << 10);
    }

    private static byte[] bytes(String text) {
        return Records.bytes(text);
    }

    /// An interrupted thread must not close a file under the others, as Java's channels do.
    @ParameterizedTest
    @EnumSource
    void interruptedCallersAreServedAndStayInterrupted(ReadMode read) throws Exception {
        StoreOptions options = options().wal(WalMode.ALWAYS).read(read).build();
        try (Store store = LsmStore.open(options)) {
            for (int i = 0; i < 600; i++) { // some flushed, some not
                if (i % 50 == 0) {
                    Thread.currentThread().interrupt();
                }
                store.put(bytes("key" + i % 500), new byte[200]);
                assertThat(Thread.interrupted()).isEqualTo(i % 50 == 0);
            }
            AtomicBoolean done = new AtomicBoolean();
            FutureTask<Integer> reading = new FutureTask<>(() -> {
                int rounds = 0;
                for (; !done.get() || rounds == 0; rounds++) {
                    for (int i = 0; i < 500; i++) {
                        assertThat(store.get(bytes("key" + i))).hasSize(200);
                    }
                }
                return rounds;
            });
            Thread victim = Thread.ofPlatform().start(reading);
            for (int i = 0; i < 200; i++) {
                victim.interrupt();
                assertThat(store.get(bytes("key" + i))).hasSize(200);
            }
            done.set(true);
            assertThat(reading.get()).as("rounds of the interrupted thread").isPositive(); // or throws what it met
            assertThat(store.isWritable()).isTrue();
        }
    }

    /// A value larger than a memtable needs a log of its own, made by the writer.
    @ParameterizedTest
    @EnumSource
    void aWriterThatIsInterruptedWhileItStartsALogDoesNotStopTheStore(WalMode wal) {
        try (Store store = LsmStore.open(options().wal(wal).build())) {
            for (int i = 0; i < 5; i++) {
                Thread.currentThread().interrupt();
                store.put(bytes("large" + i), new byte[200 << 10]);
                assertThat(Thread.interrupted()).isTrue();
            }
            assertThat(store.isWritable()).isTrue();
            assertThat(store.get(bytes("large0"))).hasSize(200 << 10);
        }
    }
}
