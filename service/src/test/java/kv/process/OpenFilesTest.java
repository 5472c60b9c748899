package kv.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The real process at its limit of open files, which the test sets.
class OpenFilesTest {
    /// In which an acceptor that does not wait between two tries makes thousands.
    private static final int MANY_TRIES_MILLIS = 1_000;

    @TempDir
    private Path directory;

    @Test
    void whoConnectsAtTheLimitIsAcceptedLaterAndTheLogHasOneLineOfIt() throws Exception {
        // a sync in the background would load its classes, too
        try (ServiceProcess service =
                ServiceProcess.start(List.of("--dir=" + directory, "--port=0", "--selectors=1", "--wal=os"))) {
            int port = service.awaitReady();
            try (HttpConnection before = new HttpConnection(port)) {
                assertThat(before.put("a", "one")).isEqualTo(201);
                // it is started from classes, each of which is a file: those that it needs below are loaded here
                assertThat(before.get("a").body()).isEqualTo("one");
                service.awaitLogged("connections by selector: [1]");
                setLimit(service, 3);
                // the system has set one descriptor aside for who comes first
                try (HttpConnection first = new HttpConnection(port);
                        HttpConnection waiting = new HttpConnection(port)) {
                    service.awaitLogged("Too many open files");
                    Thread.sleep(MANY_TRIES_MILLIS);
                    assertThat(service.err().lines().filter(line -> line.contains("Too many open files")))
                            .hasSize(1);
                    assertThat(before.get("a").body())
                            .as("who is connected is served")
                            .isEqualTo("one");
                    setLimit(service, 1_000);
                    assertThat(first.get("a").body()).isEqualTo("one");
                    assertThat(waiting.get("a").body()).isEqualTo("one");
                }
            }
        }
    }

    private static void setLimit(ServiceProcess service, int files) {
        ProcessBuilder prlimit = new ProcessBuilder("prlimit", "--pid=" + service.pid(), "--nofile=" + files + ":");
        boolean set;
        try {
            set = prlimit.inheritIO().start().onExit().join().exitValue() == 0;
        } catch (IOException e) {
            set = false;
        }
        assumeTrue(set, "prlimit is not there: it sets the limit");
    }
}
