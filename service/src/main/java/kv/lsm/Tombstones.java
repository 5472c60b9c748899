package kv.lsm;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import kv.lsm.memory.Keys;

/// Tells which tombstones of a compaction hide nothing any more: those whose key no older table can hold.
///
/// Keys are asked in ascending order, so each run is walked once.
final class Tombstones {
    private final List<List<TableMetadata>> olderRuns = new ArrayList<>();
    private final int[] positions;

    Tombstones(Version version, CompactionChoice choice) {
        Set<Long> inputs = choice.tables().stream().map(TableMetadata::number).collect(Collectors.toSet());
        Run oldestInput = choice.inputs().getLast();
        boolean older = false;
        for (Run run : version.runs()) {
            if (older) {
                olderRuns.add(run.tables().stream()
                        .filter(table -> !inputs.contains(table.number()))
                        .toList());
            }
            older |= run.level() == oldestInput.level() && run.number() == oldestInput.number();
        }
        positions = new int[olderRuns.size()];
    }

    /// True when a tombstone of this key can be dropped; keys come in ascending order.
    boolean isUseless(long key, int keyLength) {
        for (int i = 0; i < positions.length; i++) {
            List<TableMetadata> tables = olderRuns.get(i);
            while (positions[i] < tables.size()
                    && Keys.compare(tables.get(positions[i]).largest(), key, keyLength) < 0) {
                positions[i]++;
            }
            if (positions[i] < tables.size()
                    && Keys.compare(tables.get(positions[i]).smallest(), key, keyLength) <= 0) {
                return false;
            }
        }
        return true;
    }
}
