package kv.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.LongSupplier;
import java.util.stream.Stream;
import kv.Eventually;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Turns as the kernel tells them. A thread that has asked for short ones cannot get rid of what comes with them, so
/// each test has threads of its own.
class ShortTurnsTest {
    private static final Path TASKS = Path.of("/proc/self/task");
    private static final String SELECTOR = "NIO Selector";

    @BeforeEach
    void theKernelTells() {
        assumeTrue(usualNanos() != ShortTurns.UNKNOWN, "nobody can tell here");
    }

    private static long onItsOwnThread(LongSupplier work) {
        return CompletableFuture.supplyAsync(
                        work::getAsLong, task -> Thread.ofPlatform().start(task))
                .join();
    }

    private static long usualNanos() {
        return onItsOwnThread(() -> ShortTurns.nanosOf(0));
    }

    /// What a thread that asks should have then: since Linux 6.12 what it asked for.
    private static long shortNanos() {
        String[] version = System.getProperty("os.version").split("[.-]");
        int major = Integer.parseInt(version[0]);
        boolean hasTurns = major > 6 || major == 6 && Integer.parseInt(version[1]) >= 12;
        return hasTurns ? ShortTurns.TURN_NANOS : usualNanos();
    }

    @Test
    void aThreadThatAsksHasShortTurns() {
        assertThat(onItsOwnThread(() -> {
                    ShortTurns.askForCallingThread();
                    return ShortTurns.nanosOf(0);
                }))
                .isEqualTo(shortNanos());
    }

    @Test
    void askingAgainChangesNothing() {
        assertThat(onItsOwnThread(() -> {
                    ShortTurns.askForCallingThread();
                    ShortTurns.askForCallingThread();
                    return ShortTurns.nanosOf(0);
                }))
                .isEqualTo(shortNanos());
    }

    @Test
    void threadsThatItStartsHaveTheUsualOnes() {
        long usual = usualNanos();
        assertThat(onItsOwnThread(() -> {
                    ShortTurns.askForCallingThread();
                    return usualNanos();
                }))
                .isEqualTo(usual);
    }

    @Test
    void noThreadHasThatNumber() {
        assertThat(ShortTurns.nanosOf(Integer.MAX_VALUE)).isEqualTo(ShortTurns.UNKNOWN);
    }

    @Test
    void selectorsHaveShortTurnsAndTheirServersOtherThreadsHaveNot() throws IOException {
        assumeFalse(one.nio.net.Socket.USE_NATIVE_SOCKET, "one-nio's own selector runs");
        long usual = usualNanos();
        try (TestServer server =
                new TestServer(new MemoryStore(), HttpOptions.onFreePort().withSelectors(2))) {
            assertThat(server.ask(RawClient.get("/v0/status")).status()).isEqualTo(200);
            Eventually.holds(() ->
                    turnsOf(SELECTOR).size() >= 2 && turnsOf(SELECTOR).stream().allMatch(turn -> turn == shortNanos()));
            assertThat(turnsOf("connection-swee"))
                    .isNotEmpty()
                    .allMatch(turn -> turn == usual || turn == ShortTurns.UNKNOWN, "usual, or of one that has ended");
        }
    }

    /// Of the threads of this process whose names begin so, of which the system keeps 15 characters.
    private static List<Long> turnsOf(String name) {
        try (Stream<Path> tasks = Files.list(TASKS)) {
            return tasks.filter(task -> nameOf(task).startsWith(name))
                    .map(task ->
                            ShortTurns.nanosOf(Long.parseLong(task.getFileName().toString())))
                    .toList();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static String nameOf(Path task) {
        try {
            return Files.readString(task.resolve("comm"));
        } catch (IOException e) { // it has ended meanwhile
            return "";
        }
    }
}
