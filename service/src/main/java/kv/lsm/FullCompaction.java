package kv.lsm;

import java.util.List;
import java.util.Optional;

/// What to merge when an operator wants all tables in one sorted run. A pure function, as a [CompactionPolicy]
/// is.
final class FullCompaction {
    static final String CAUSE = "requested";

    private FullCompaction() {}

    /// All runs into one that the store's policy then leaves alone; empty when there is nothing to merge and no
    /// tombstone to drop.
    static Optional<CompactionChoice> choose(Version version, StoreOptions options) {
        List<Run> runs = version.runs();
        if (runs.isEmpty()) {
            return Optional.empty();
        }
        boolean tiered = options.compaction() == CompactionPolicyKind.TIERED;
        int level = tiered ? runs.getLast().level() : level(version, options);
        boolean isDone = runs.size() == 1
                && runs.getFirst().level() == level
                && version.tables().stream().allMatch(table -> table.tombstones() == 0);
        long run = level == 0 ? runs.getFirst().number() : 0;
        return isDone ? Optional.empty() : Optional.of(new CompactionChoice(runs, level, run, CAUSE));
    }

    /// The first level whose target all tables together do not exceed, and none above those that hold some now.
    private static int level(Version version, StoreOptions options) {
        LeveledPolicy leveled = LeveledPolicy.of(options);
        long bytes = version.tables().stream().mapToLong(TableMetadata::bytes).sum();
        int level = Math.max(1, version.deepestLevel());
        while (level < LeveledPolicy.LEVEL_MAX && leveled.targetBytes(level) < bytes) {
            level++;
        }
        return level;
    }
}
