package kv.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.TreeMap;

/// One client with keys of its own: writes and reads them one request at a time, knows what each must hold, and what its
/// last, unanswered request may have made of one of them.
final class KilledWriter {
    private static final int KEYS = 400;

    private final String prefix;
    private final Random random;
    /// what was acknowledged last; absent when nothing was, or a delete
    private final Map<String, String> acknowledged = new HashMap<>();
    private String unansweredKey;
    private String unansweredValue;
    /// written by the thread that writes, watched by the one that kills
    private volatile long acknowledgedCount;
    private long nextNumber;

    KilledWriter(String prefix, Random random) {
        this.prefix = prefix;
        this.random = random;
    }

    long acknowledged() {
        return acknowledgedCount;
    }

    /// Until the service dies. Reads on the way must give the last acknowledged value.
    void writeUntilDisconnected(int port) {
        try (HttpConnection connection = new HttpConnection(port)) {
            while (true) {
                String key = prefix + random.nextInt(KEYS);
                int kind = random.nextInt(10);
                if (kind < 2) {
                    HttpConnection.Reply reply = connection.get(key);
                    assertThat(reply.valueOrNull()).as("read of " + key).isEqualTo(acknowledged.get(key));
                    continue;
                }
                String value = kind == 2 ? null : value();
                unansweredKey = key;
                unansweredValue = value;
                int status = value == null ? connection.delete(key) : connection.put(key, value);
                assertThat(status).as("write of " + key).isEqualTo(value == null ? 202 : 201);
                settle(key, value);
                acknowledgedCount = acknowledgedCount + 1;
            }
        } catch (IOException e) {
            // killed: what was not answered may or may not have happened
        }
    }

    private String value() {
        int length = random.nextInt(200) == 0 ? random.nextInt(200_000) : random.nextInt(500);
        String head = prefix + nextNumber++ + ":";
        return head + "v".repeat(length);
    }

    private void settle(String key, String value) {
        if (value == null) {
            acknowledged.remove(key);
        } else {
            acknowledged.put(key, value);
        }
        unansweredKey = null;
        unansweredValue = null;
    }

    /// Reads all keys one by one and as one range, after a restart.
    void check(int port, String where) throws IOException {
        try (HttpConnection connection = new HttpConnection(port)) {
            if (unansweredKey != null) {
                String found = connection.get(unansweredKey).valueOrNull();
                if (Objects.equals(found, unansweredValue)) {
                    settle(unansweredKey, unansweredValue);
                } else {
                    assertThat(found).as(where + ": " + unansweredKey + " must be as before or as on its way")
                            .isEqualTo(acknowledged.get(unansweredKey));
                    unansweredKey = null;
                }
            }
            for (int k = 0; k < KEYS; k++) {
                String key = prefix + k;
                String found = connection.get(key).valueOrNull();
                if (!Objects.equals(found, acknowledged.get(key))) {
                    throw new AssertionError(where + ": " + key + " is " + start(found) + " but must be " + start(acknowledged.get(key)));
                }
            }
            // '.' comes after '-', so the range holds exactly the keys of this writer
            Map<String, String> range = connection.range(prefix, prefix.substring(0, prefix.length() - 1) + ".");
            assertThat(range.keySet()).as(where + ": keys of the range").isEqualTo(new TreeMap<>(acknowledged).keySet());
            assertThat(range.equals(new TreeMap<>(acknowledged))).as(where + ": values of the range").isTrue();
        }
    }

    private static String start(String value) {
        return value == null ? "absent" : value.substring(0, Math.min(40, value.length()));
    }
}
