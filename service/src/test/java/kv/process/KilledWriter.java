package kv.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.TreeMap;

/// One client with keys of its own: writes and reads them one request at a time, some writes several keys at
/// once. Knows what each key must hold, and what its last, unanswered request may have made of some of them:
/// all of what it asked for or nothing.
final class KilledWriter {
    private static final int KEYS = 400;

    private final String prefix;
    private final Random random;
    /// what was acknowledged last; absent when nothing was, or a delete
    private final Map<String, String> acknowledged = new HashMap<>();
    /// what a request that was not answered may have made of its keys; null for a delete
    private final Map<String, String> unanswered = new LinkedHashMap<>();
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
                int kind = random.nextInt(10);
                if (kind < 2) {
                    String key = prefix + random.nextInt(KEYS);
                    HttpConnection.Reply reply = connection.get(key);
                    assertThat(reply.valueOrNull()).as("read of " + key).isEqualTo(acknowledged.get(key));
                    continue;
                }
                for (int writes = kind == 3 ? 2 + random.nextInt(30) : 1; writes > 0; writes--) {
                    unanswered.put(prefix + random.nextInt(KEYS), random.nextInt(7) == 0 ? null : value());
                }
                write(connection);
                acknowledgedCount = acknowledgedCount + unanswered.size();
                settle();
            }
        } catch (IOException e) {
            // killed: what was not answered may or may not have happened
        }
    }

    private void write(HttpConnection connection) throws IOException {
        Map.Entry<String, String> first = unanswered.entrySet().iterator().next();
        if (unanswered.size() > 1) {
            assertThat(connection.batch(unanswered))
                    .as("writes of " + unanswered.keySet())
                    .isEqualTo(200);
        } else if (first.getValue() == null) {
            assertThat(connection.delete(first.getKey()))
                    .as("delete of " + first.getKey())
                    .isEqualTo(202);
        } else {
            assertThat(connection.put(first.getKey(), first.getValue()))
                    .as("write of " + first.getKey())
                    .isEqualTo(201);
        }
    }

    private String value() {
        int length = random.nextInt(200) == 0 ? random.nextInt(200_000) : random.nextInt(500);
        String head = prefix + nextNumber++ + ":";
        return head + "v".repeat(length);
    }

    private void settle() {
        unanswered.forEach((key, valueOrNull) -> {
            if (valueOrNull == null) {
                acknowledged.remove(key);
            } else {
                acknowledged.put(key, valueOrNull);
            }
        });
        unanswered.clear();
    }

    /// Reads all keys one by one and as one range, after a restart.
    void check(int port, String where) throws IOException {
        try (HttpConnection connection = new HttpConnection(port)) {
            boolean happened = true;
            for (Map.Entry<String, String> write : unanswered.entrySet()) {
                happened &= Objects.equals(connection.get(write.getKey()).valueOrNull(), write.getValue());
            }
            if (happened) {
                settle();
            } else {
                unanswered.clear(); // the checks below find what is not as it was before
            }
            for (int k = 0; k < KEYS; k++) {
                String key = prefix + k;
                String found = connection.get(key).valueOrNull();
                if (!Objects.equals(found, acknowledged.get(key))) {
                    throw new AssertionError(where + ": " + key + " is " + start(found) + " but must be "
                            + start(acknowledged.get(key)));
                }
            }
            // '.' comes after '-', so the range holds exactly the keys of this writer
            Map<String, String> range = connection.range(prefix, prefix.substring(0, prefix.length() - 1) + ".");
            assertThat(range.keySet())
                    .as(where + ": keys of the range")
                    .isEqualTo(new TreeMap<>(acknowledged).keySet());
            assertThat(range.equals(new TreeMap<>(acknowledged)))
                    .as(where + ": values of the range")
                    .isTrue();
        }
    }

    private static String start(String value) {
        return value == null ? "absent" : value.substring(0, Math.min(40, value.length()));
    }
}
