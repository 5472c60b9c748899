package kv.lsm;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/// [CompactionPolicyKind#LEVELED]: keeps each level from 1 on one run within its target size.
///
/// The level that exceeds its target by the largest factor goes first, unless level 0 will soon stop writers:
/// then level 0 does. Each of its merges rewrites level 1, though, and where more runs gather meanwhile than it
/// merged, level 1 would grow for ever, and these merges with it. So a level that holds more than
/// `levelMultiplier` times its target and `levelMultiplier` times the level above goes before that: up to there
/// a byte of level 0 costs no more than a byte of any other level does.
///
/// From level 0 all runs go together with what they overlap in level 1; from another level the table that
/// overlaps least of the next level for its size.
///
/// @param level0Runs runs of level 0 that start a compaction
/// @param level0Urgent runs of level 0 from which on it goes before every other level
/// @param level1Bytes target of level 1
/// @param levelMultiplier ratio of the targets of two levels
record LeveledPolicy(int level0Runs, int level0Urgent, long level1Bytes, int levelMultiplier)
        implements CompactionPolicy {
    /// Tables never leave this level.
    static final int LEVEL_MAX = 6;

    static LeveledPolicy of(StoreOptions options) {
        return new LeveledPolicy(
                options.level0Compaction(),
                CompactionPolicy.level0Urgent(options),
                options.level1Bytes(),
                options.levelMultiplier());
    }

    @Override
    public Optional<CompactionChoice> choose(Version version) {
        if (version.level(0).size() >= level0Urgent) {
            int level = overgrownBelow0(version);
            return Optional.of(level == 0 ? fromLevel0(version) : fromLevel(version, level));
        }
        int best = -1;
        double bestScore = 1;
        for (int level = 0; level < LEVEL_MAX; level++) {
            double score = score(version, level);
            if (score >= bestScore) {
                best = level;
                bestScore = score;
            }
        }
        return switch (best) {
            case -1 -> Optional.empty();
            case 0 -> Optional.of(fromLevel0(version));
            default -> Optional.of(fromLevel(version, best));
        };
    }

    /// The last of the levels from 1 on each of which is too large for the one above it to be merged into; 0
    /// when level 1 is not.
    private int overgrownBelow0(Version version) {
        int level = 0;
        double bytesAbove = bytes(version, 0);
        while (level + 1 < LEVEL_MAX) {
            double bytes = bytes(version, level + 1);
            if (bytes <= levelMultiplier * Math.max(bytesAbove, targetBytes(level + 1))) {
                break;
            }
            bytesAbove = bytes;
            level++;
        }
        return level;
    }

    private static long bytes(Version version, int level) {
        return version.level(level).stream().mapToLong(Run::bytes).sum();
    }

    private double score(Version version, int level) {
        List<Run> runs = version.level(level);
        if (level == 0) {
            return (double) runs.size() / level0Runs;
        }
        long bytes = bytes(version, level);
        // a level that just reached its target is as it should be
        return bytes <= targetBytes(level) ? 0 : bytes / targetBytes(level);
    }

    double targetBytes(int level) {
        return level1Bytes * Math.pow(levelMultiplier, level - 1.0);
    }

    private static CompactionChoice fromLevel0(Version version) {
        List<Run> inputs = new ArrayList<>(version.level(0));
        List<TableMetadata> tables =
                inputs.stream().flatMap(run -> run.tables().stream()).toList();
        byte[] first = tables.stream()
                .map(TableMetadata::smallest)
                .min(Arrays::compareUnsigned)
                .orElseThrow();
        byte[] last = tables.stream()
                .map(TableMetadata::largest)
                .max(Arrays::compareUnsigned)
                .orElseThrow();
        addOverlapping(version, 1, first, last, inputs);
        return new CompactionChoice(inputs, 1, 0, "level0_runs");
    }

    private static CompactionChoice fromLevel(Version version, int level) {
        TableMetadata table = version.level(level).getFirst().tables().stream()
                .min(Comparator.comparingDouble(candidate -> overlap(version, level + 1, candidate)))
                .orElseThrow();
        List<Run> inputs = new ArrayList<>(List.of(new Run(level, 0, List.of(table))));
        addOverlapping(version, level + 1, table.smallest(), table.largest(), inputs);
        return new CompactionChoice(inputs, level + 1, 0, "level_bytes");
    }

    /// Bytes of `level` that have to be rewritten per byte of the table.
    private static double overlap(Version version, int level, TableMetadata table) {
        long bytes = version.level(level).stream()
                .flatMap(run -> run.overlapping(table.smallest(), table.largest()).stream())
                .mapToLong(TableMetadata::bytes)
                .sum();
        return (double) bytes / table.bytes();
    }

    private static void addOverlapping(Version version, int level, byte[] first, byte[] last, List<Run> inputs) {
        for (Run run : version.level(level)) {
            List<TableMetadata> overlapping = run.overlapping(first, last);
            if (!overlapping.isEmpty()) {
                inputs.add(new Run(level, run.number(), overlapping));
            }
        }
    }
}
