package kv.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Random;
import java.util.stream.Stream;
import kv.lsm.LsmStore;
import kv.lsm.RangeCursor;
import kv.lsm.Store;
import kv.lsm.StoreOptions;

/// An operator who asks for flushes, compactions and checkpoints while others write, until the service dies.
final class KilledOperator {
    private static final int PAUSE_MILLIS_MAX = 100;

    private final Path checkpoints;
    private final Random random;
    private Path lastCheckpointOrNull;
    private int made;
    private long done;

    /// @param checkpoints a directory on the file system of the store, for checkpoints alone
    KilledOperator(Path checkpoints, Random random) {
        this.checkpoints = checkpoints;
        this.random = random;
    }

    /// Requests that were answered.
    long done() {
        return done;
    }

    void askUntilDisconnected(int port) throws InterruptedException {
        try (HttpConnection connection = new HttpConnection(port)) {
            while (true) {
                Path checkpoint = checkpoints.resolve(Integer.toString(made));
                String request = switch (random.nextInt(4)) {
                    case 0, 1 -> "flush";
                    case 2 -> "compact";
                    default -> "checkpoint?dir=" + checkpoint;
                };
                made += request.startsWith("checkpoint") ? 1 : 0;
                int status = connection.post("/v0/admin/" + request);
                assertThat(status).as(request).isIn(200, 503); // the latter of a service that stops
                done++;
                if (status == 200 && request.startsWith("checkpoint")) {
                    lastCheckpointOrNull = checkpoint;
                }
                Thread.sleep(random.nextInt(PAUSE_MILLIS_MAX));
            }
        } catch (IOException e) {
            // killed: what was not answered may or may not have happened
        }
    }

    /// The last checkpoint that was answered is a store, whatever came after; takes all of them away.
    void checkLastCheckpoint(String where) throws IOException {
        if (lastCheckpointOrNull != null) {
            try (Store copy = LsmStore.open(StoreOptions.at(lastCheckpointOrNull));
                    RangeCursor entries = copy.range(new byte[0], null)) {
                while (entries.next()) {
                    String key = new String(entries.key());
                    assertThat(new String(entries.value()))
                            .as("%s: value of %s in a checkpoint", where, key)
                            .startsWith(key.substring(0, key.indexOf('-') + 1));
                }
            }
            lastCheckpointOrNull = null;
        }
        try (Stream<Path> files = Files.walk(checkpoints)) {
            for (Path file : files.sorted(Comparator.reverseOrder())
                    .filter(file -> !file.equals(checkpoints))
                    .toList()) {
                Files.delete(file);
            }
        }
    }
}
