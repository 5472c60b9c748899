package kv.lsm;

import java.util.List;

/// Several writes that become one: after a crash all of them are there or none is. Of two with the same key the
/// later one counts.
public record WriteBatch(List<Write> writes) {
    /// @param valueOrNull null removes the key
    public record Write(byte[] key, byte[] valueOrNull) {}

    public WriteBatch {
        writes = List.copyOf(writes);
    }
}
