package kv.lsm;

import java.util.Optional;

/// Decides what to merge. A pure function of the version: no clock, no files, no memory of earlier choices.
public sealed interface CompactionPolicy permits LeveledPolicy, TieredPolicy, NoCompactionPolicy {

    /// What to merge next, or empty when the version is as it should be.
    Optional<CompactionChoice> choose(Version version);

    static CompactionPolicy of(StoreOptions options) {
        return switch (options.compaction()) {
            case LEVELED -> LeveledPolicy.of(options);
            case TIERED ->
                new TieredPolicy(
                        options.level0Compaction(),
                        (options.level0Compaction() + options.level0Slowdown()) / 2,
                        level0Urgent(options));
            case NONE -> new NoCompactionPolicy();
        };
    }

    /// From so many runs on level 0 goes first: half way from where it slows writers down to where it stops
    /// them. Not earlier: while writers are slowed down, what is further over its target may go first, and that
    /// is what keeps the levels below in shape when more is written than can be compacted. Not later: the merge
    /// of level 0 takes its time too.
    static int level0Urgent(StoreOptions options) {
        return (options.level0Slowdown() + options.level0Stop()) / 2;
    }
}
