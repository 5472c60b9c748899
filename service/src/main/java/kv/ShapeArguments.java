package kv;

import static kv.Arguments.between;

import kv.lsm.StoreOptions;
import picocli.CommandLine.Option;

/// The options that shape the tree of tables and decide when writers wait for flush and compaction.
final class ShapeArguments {
    private static final long BYTES_MIN = 1 << 10;
    private static final long BYTES_MAX = 1L << 40;

    @Option(names = "--table-bytes", paramLabel = "BYTES", converter = ByteCount.class, defaultValue = "64m", description = {
        "Size of a table. Default: ${DEFAULT-VALUE}.",
        "Larger makes fewer files and longer single compactions."
    })
    long tableBytes;

    @Option(names = "--frozen-memtables", paramLabel = "N", defaultValue = "2", description = {
        "Full memtables that may wait for their flush before writers stop. Default: ${DEFAULT-VALUE}.",
        "More takes longer bursts; each costs --memtable-bytes of memory."
    })
    int frozenMemtables;

    @Option(names = "--level0-compaction", paramLabel = "N", defaultValue = "4", description = {
        "Sorted runs in level 0 that start a compaction. Default: ${DEFAULT-VALUE}.",
        "More rewrites less and makes reads slower."
    })
    int level0Compaction;

    @Option(names = "--level0-slowdown", paramLabel = "N", defaultValue = "16", description = {
        "Sorted runs in level 0 that slow writers down to --slowdown-bytes-per-second. Default: ${DEFAULT-VALUE}.",
        "More lets compaction fall further behind: reads get slower first."
    })
    int level0Slowdown;

    @Option(names = "--level0-stop", paramLabel = "N", defaultValue = "32", description = {
        "Sorted runs in level 0 that stop writers. Default: ${DEFAULT-VALUE}. At least --level0-slowdown.",
        "More takes longer bursts at the price of reads."
    })
    int level0Stop;

    @Option(names = "--slowdown-bytes-per-second", paramLabel = "BYTES", converter = ByteCount.class, defaultValue = "16m",
            description = {
        "Bytes of records per second that slowed-down writers share. Default: ${DEFAULT-VALUE}.",
        "Less helps compaction to catch up and makes each write wait longer."
    })
    long slowdownBytesPerSecond;

    @Option(names = "--level1-bytes", paramLabel = "BYTES", converter = ByteCount.class, defaultValue = "256m", description = {
        "Target size of level 1 with --compaction leveled. Default: ${DEFAULT-VALUE}.",
        "Larger means fewer levels and dearer compactions from level 0."
    })
    long level1Bytes;

    @Option(names = "--level-multiplier", paramLabel = "N", defaultValue = "10", description = {
        "Each level's target size in those of the level before. Default: ${DEFAULT-VALUE}.",
        "More means fewer levels and more rewriting in each."
    })
    int levelMultiplier;

    @Option(names = "--compaction-bytes-per-second", paramLabel = "BYTES", converter = ByteCount.class, defaultValue = "0",
            description = {
        "Bytes of entries that compaction merges per second; 0 for no limit. Default: ${DEFAULT-VALUE}.",
        "Less leaves disk and processor to requests; tables pile up until writers would wait, then the limit is off."
    })
    long compactionBytesPerSecond;

    StoreOptions.Builder applyTo(StoreOptions.Builder options) {
        int slowdown = between("--level0-slowdown", level0Slowdown, 2, 10_000);
        return options.tableBytes(between("--table-bytes", tableBytes, BYTES_MIN, 1 << 30))
                .frozenMemtablesMax(between("--frozen-memtables", frozenMemtables, 1, 64))
                .level0(
                        between("--level0-compaction", level0Compaction, 2, Math.min(1_000, slowdown)),
                        slowdown,
                        between("--level0-stop", level0Stop, slowdown, 10_000))
                .slowdownBytesPerSecond(between("--slowdown-bytes-per-second", slowdownBytesPerSecond, BYTES_MIN, BYTES_MAX))
                .level1Bytes(between("--level1-bytes", level1Bytes, BYTES_MIN, BYTES_MAX))
                .levelMultiplier(between("--level-multiplier", levelMultiplier, 2, 100))
                .compactionBytesPerSecond(between("--compaction-bytes-per-second", compactionBytesPerSecond, 0, BYTES_MAX));
    }
}
