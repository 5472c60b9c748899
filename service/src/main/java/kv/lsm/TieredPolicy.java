package kv.lsm;

import java.util.List;
import java.util.Optional;

/// [CompactionPolicyKind#TIERED]: merges neighbouring runs of like size, the newest first.
///
/// Only neighbours in age are merged, so the result takes their place in the order of age. Every run counts,
/// whatever its level: a store that was leveled before has one large run per level.
///
/// @param runsMin fewest runs merged at once
/// @param runsMax from this many runs on the newest are merged though their sizes differ, or reads would slow
/// down
/// @param level0Urgent from this many runs in level 0 on the newest go before older ones of like size,
/// which take longer to merge: writers
///     would be stopped soon
record TieredPolicy(int runsMin, int runsMax, int level0Urgent) implements CompactionPolicy {
    /// Runs are alike when none is larger than the mean of those before it by more than this factor, or
    /// smaller.
    private static final double LIKE_SIZE_FACTOR = 2;

    @Override
    public Optional<CompactionChoice> choose(Version version) {
        List<Run> runs = version.runs();
        boolean isUrgent = version.level(0).size() >= level0Urgent;
        for (int first = 0; first + runsMin <= runs.size(); first++) {
            int end = endOfLikeSizes(runs, first);
            if (isUrgent && end - first < runsMin) {
                break;
            }
            if (end - first >= runsMin) {
                return Optional.of(merge(runs.subList(first, end), "like_sizes"));
            }
        }
        return runs.size() >= Math.max(runsMax, runsMin)
                ? Optional.of(merge(runs.subList(0, runsMin), "many_runs"))
                : Optional.empty();
    }

    private static int endOfLikeSizes(List<Run> runs, int first) {
        double sum = runs.get(first).bytes();
        int end = first + 1;
        for (; end < runs.size(); end++) {
            double mean = sum / (end - first);
            double bytes = runs.get(end).bytes();
            if (bytes > mean * LIKE_SIZE_FACTOR || bytes < mean / LIKE_SIZE_FACTOR) {
                break;
            }
            sum += bytes;
        }
        return end;
    }

    private static CompactionChoice merge(List<Run> runs, String cause) {
        Run newest = runs.getFirst();
        Run oldest = runs.getLast();
        return new CompactionChoice(runs, oldest.level(), oldest.level() == 0 ? newest.number() : 0, cause);
    }
}
