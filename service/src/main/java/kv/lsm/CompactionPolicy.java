package kv.lsm;

import java.util.Optional;

/// Decides what to merge. A pure function of the version: no clock, no files, no memory of earlier choices.
public sealed interface CompactionPolicy permits LeveledPolicy, TieredPolicy, NoCompactionPolicy {

    /// What to merge next, or empty when the version is as it should be.
    Optional<CompactionChoice> choose(Version version);

    static CompactionPolicy of(StoreOptions options) {
        return switch (options.compaction()) {
            case LEVELED -> new LeveledPolicy(
                    options.level0Compaction(), options.level1Bytes(), options.levelMultiplier());
            case TIERED -> new TieredPolicy(
                    options.level0Compaction(), (options.level0Compaction() + options.level0Slowdown()) / 2);
            case NONE -> new NoCompactionPolicy();
        };
    }
}
