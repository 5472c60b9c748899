package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;

/// What was written to a store, in order, and how much of it must survive whatever happens. What an opening
/// finds is right when it is the state after some first part of the history, never less than was promised,
/// never a mixture.
final class WriteHistory {
    /// @param ends false for a write of a batch that is not its last one: no crash leaves a history that ends
    /// there
    private record Write(byte[] key, byte[] valueOrNull, boolean ends) {}

    private final List<Write> writes = new ArrayList<>();
    /// So many survive power loss, and so many the end of the process.
    private int promised;
    private int kept;

    /// A history that goes on from here apart from this one.
    WriteHistory copy() {
        WriteHistory copy = new WriteHistory();
        copy.writes.addAll(writes);
        copy.promised = promised;
        copy.kept = kept;
        return copy;
    }

    void add(byte[] key, byte[] valueOrNull) {
        add(key, valueOrNull, true);
    }

    /// @param ends false for a write of a batch that is not its last one
    void add(byte[] key, byte[] valueOrNull, boolean ends) {
        writes.add(new Write(key, valueOrNull, ends));
    }

    int size() {
        return writes.size();
    }

    void promiseAll() {
        promise(writes.size());
    }

    /// The first `count` writes must survive from now on, whatever happens.
    void promise(int count) {
        promised = Math.max(promised, count);
    }

    /// All writes must survive the end of the process from now on.
    void keepAll() {
        kept = writes.size();
    }

    /// What was not promised may be gone.
    void powerLost() {
        kept = promised;
    }

    /// Finds the first part of the history that gives what the store holds; the history continues from there.
    void checkRecovered(Store store, String where) {
        TreeMap<byte[], byte[]> found = new TreeMap<>(Arrays::compareUnsigned);
        try (RangeCursor cursor = store.range(new byte[0], null)) {
            while (cursor.next()) {
                found.put(cursor.key(), cursor.value());
            }
        }
        int recovered = recovered(found);
        assertThat(recovered)
                .as("writes recovered of %d, entries found=%d, %s", writes.size(), found.size(), where)
                .isGreaterThanOrEqualTo(Math.max(promised, kept));
        writes.subList(recovered, writes.size()).clear();
        for (byte[] key : found.keySet()) {
            assertThat(store.get(key)).as(where).isEqualTo(found.get(key));
        }
    }

    /// The most writes after which the state is the one found, or -1.
    private int recovered(TreeMap<byte[], byte[]> found) {
        TreeMap<byte[], byte[]> state = new TreeMap<>(Arrays::compareUnsigned);
        int mismatches = found.size();
        int recovered = mismatches == 0 ? 0 : -1;
        for (int i = 0; i < writes.size(); i++) {
            Write write = writes.get(i);
            byte[] wanted = found.get(write.key);
            mismatches += Arrays.equals(state.get(write.key), wanted) ? 1 : 0;
            if (write.valueOrNull == null) {
                state.remove(write.key);
            } else {
                state.put(write.key, write.valueOrNull);
            }
            mismatches -= Arrays.equals(state.get(write.key), wanted) ? 1 : 0;
            if (mismatches == 0 && write.ends) {
                recovered = i + 1;
            }
        }
        return recovered;
    }
}
