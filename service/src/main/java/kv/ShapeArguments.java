package kv;

import kv.lsm.StoreOptions;
import picocli.CommandLine.Option;

/// The options that shape the tree of tables and decide when writers wait for flush and compaction.
final class ShapeArguments {
    @Option(
            names = "--table-bytes",
            paramLabel = "BYTES",
            converter = ByteCount.class,
            defaultValue = "64m",
            description = {
                "Size of a table. Default: ${DEFAULT-VALUE}.",
                "Larger makes fewer files and longer single compactions."
            })
    long tableBytes;

    @Option(
            names = "--frozen-memtables",
            paramLabel = "N",
            defaultValue = "2",
            description = {
                "Full memtables that may wait for their flush before writers stop. Default: ${DEFAULT-VALUE}.",
                "More takes longer bursts; each costs --memtable-bytes of memory."
            })
    int frozenMemtables;

    @Option(
            names = "--level0-compaction",
            paramLabel = "N",
            defaultValue = "4",
            description = {
                "Sorted runs in level 0 that start a compaction. Default: ${DEFAULT-VALUE}.",
                "More rewrites less and makes reads slower."
            })
    int level0Compaction;

    @Option(
            names = "--level0-slowdown",
            paramLabel = "N",
            defaultValue = "16",
            description = {
                "Sorted runs in level 0 that slow writers down to --slowdown-bytes-per-second. Default: "
                        + "${DEFAULT-VALUE}.",
                "More lets compaction fall further behind: reads get slower first."
            })
    int level0Slowdown;

    @Option(
            names = "--level0-stop",
            paramLabel = "N",
            defaultValue = "32",
            description = {
                "Sorted runs in level 0 that stop writers. Default: ${DEFAULT-VALUE}. At least --level0-slowdown.",
                "More takes longer bursts at the price of reads."
            })
    int level0Stop;

    @Option(
            names = "--slowdown-bytes-per-second",
            paramLabel = "BYTES",
            converter = ByteCount.class,
            defaultValue = "16m",
            description = {
                "Bytes of records per second that slowed-down writers share. Default: ${DEFAULT-VALUE}.",
                "Less helps compaction to catch up and makes each write wait longer."
            })
    long slowdownBytesPerSecond;

    @Option(
            names = "--level1-bytes",
            paramLabel = "BYTES",
            converter = ByteCount.class,
            defaultValue = "256m",
            description = {
                "Target size of level 1 with --compaction leveled. Default: ${DEFAULT-VALUE}.",
                "Larger means fewer levels and dearer compactions from level 0."
            })
    long level1Bytes;

    @Option(
            names = "--level-multiplier",
            paramLabel = "N",
            defaultValue = "10",
            description = {
                "Each level's target size in those of the level before. Default: ${DEFAULT-VALUE}.",
                "More means fewer levels and more rewriting in each."
            })
    int levelMultiplier;

    @Option(
            names = "--compaction-bytes-per-second",
            paramLabel = "BYTES",
            converter = ByteCount.class,
            defaultValue = "0",
            description = {
                "Bytes of entries that compaction merges per second; 0 for no limit. Default: ${DEFAULT-VALUE}.",
                "Less leaves disk and processor to requests; tables pile up until writers would wait, then "
                        + "the limit is off."
            })
    long compactionBytesPerSecond;

    StoreOptions.Builder applyTo(StoreOptions.Builder options) {
        int slowdown = StoreOptions.LEVEL0_SLOWDOWN_RUNS.check("--level0-slowdown", level0Slowdown);
        return options.tableBytes(StoreOptions.TABLE_BYTES.check("--table-bytes", tableBytes))
                .frozenMemtablesMax(StoreOptions.FROZEN_MEMTABLES.check("--frozen-memtables", frozenMemtables))
                .level0(
                        StoreOptions.level0CompactionRuns(slowdown).check("--level0-compaction", level0Compaction),
                        slowdown,
                        StoreOptions.level0StopRuns(slowdown).check("--level0-stop", level0Stop))
                .slowdownBytesPerSecond(StoreOptions.SLOWDOWN_BYTES_PER_SECOND.check(
                        "--slowdown-bytes-per-second", slowdownBytesPerSecond))
                .level1Bytes(StoreOptions.LEVEL1_BYTES.check("--level1-bytes", level1Bytes))
                .levelMultiplier(StoreOptions.LEVEL_MULTIPLIER.check("--level-multiplier", levelMultiplier))
                .compactionBytesPerSecond(StoreOptions.COMPACTION_BYTES_PER_SECOND.check(
                        "--compaction-bytes-per-second", compactionBytesPerSecond));
    }
}
