package kv.http;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.stream.Stream;
import kv.Eventually;
import one.nio.net.Session;
import org.junit.jupiter.api.Test;

/// Somebody sets the wall clock: no connection is closed for it, and none stays open. What one-nio noted by the
/// wall clock before is then far in the past or in the future.
class WallClockTest {
    private static final int LONG_MILLIS = 60_000;
    private static final long DAY_MILLIS = 86_400_000;

    private static void jump(TestServer server, long millis) throws ReflectiveOperationException {
        Field open = Connections.class.getDeclaredField("open");
        open.setAccessible(true);
        Field lastAccessTime = Session.class.getDeclaredField("lastAccessTime");
        lastAccessTime.setAccessible(true);
        Collection<?> sessions = (Collection<?>) open.get(server.server.connections());
        assertThat(sessions).hasSize(1);
        for (Object session : sessions) {
            // one-nio is done with the request
            Eventually.holds(() -> lastAccessTimeOf(lastAccessTime, session) != Long.MAX_VALUE);
            lastAccessTime.setLong(session, System.currentTimeMillis() + millis);
        }
    }

    private static long lastAccessTimeOf(Field lastAccessTime, Object session) {
        try {
            return lastAccessTime.getLong(session);
        } catch (IllegalAccessException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void aClockThatIsSetADayForwardClosesNoConnection() throws Exception {
        HttpOptions sweepsTenTimesASecond = HttpOptions.onFreePort().withTimeouts(LONG_MILLIS, 400);
        try (TestServer server = new TestServer(new MemoryStore(), sweepsTenTimesASecond);
                RawClient client = server.connect()) {
            assertThat(client.ask(RawClient.get("/v0/status")).status()).isEqualTo(200);
            jump(server, -DAY_MILLIS);
            Thread.sleep(500);
            assertThat(server.server.connections().size()).isEqualTo(1);
            assertThat(client.ask(RawClient.get("/v0/status")).status()).isEqualTo(200);
        }
    }

    @Test
    void aClockThatIsSetADayBackKeepsNoIdleConnection() throws Exception {
        try (TestServer server = new TestServer(
                        new MemoryStore(), HttpOptions.onFreePort().withTimeouts(1_000, LONG_MILLIS));
                RawClient client = server.connect()) {
            assertThat(client.ask(RawClient.get("/v0/status")).status()).isEqualTo(200);
            jump(server, DAY_MILLIS);
            assertThat(client.isClosedByServer()).isTrue();
        }
    }

    @Test
    void noLimitOfAConnectionOrAStopIsCountedByTheWallClock() throws IOException {
        try (Stream<Path> sources = Files.walk(Path.of("src/main/java/kv/http"))) {
            List<Path> all =
                    sources.filter(path -> path.toString().endsWith(".java")).toList();
            assertThat(all).as("the sources that are looked through").hasSizeGreaterThan(20);
            for (Path source : all) {
                assertThat(Files.readString(source))
                        .as("%s", source)
                        .doesNotContain("currentTimeMillis", "lastAccessTime");
            }
        }
    }
}
