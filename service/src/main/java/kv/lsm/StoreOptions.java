package kv.lsm;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;

/// What a store is opened with. Start from [#at] and change what differs:
///
/// ```java
/// StoreOptions.at(directory).toBuilder().wal(WalMode.ALWAYS).memtableBytes(16 << 20).build()
/// ```
///
/// Behaviour:
///
/// @param directory the store's own directory; made when absent
/// @param wal how durable an acknowledged write is
/// @param walInterval [WalMode#INTERVAL]: time between two syncs; longer loses more when the machine dies
/// @param stallLimit how long a write may wait for flush or compaction before it fails; zero waits for ever
///
/// Performance (all sizes may change between two openings of the same directory):
///
/// @param memtableBytes records and index of one memtable; larger means fewer, larger tables, more memory and a
/// longer
///     recovery. Write-ahead log and memtable share their bytes, so the log of a memtable is no larger
/// @param frozenMemtablesMax full memtables that may wait for their flush; more takes longer bursts and more
/// memory
/// @param tableBytes target size of a table; larger means fewer files and longer single compactions
/// @param blockBytes target size of a data block; larger means a smaller index, slower point reads, better
/// compression
/// @param bloomBitsPerKey 0 for no filter; 10 answers about 1 % of absent keys wrongly with
/// "maybe"; each further bit
///     costs one bit of memory per key
/// @param compaction which tables are merged
/// @param read how tables are read
/// @param compression how data blocks are stored
/// @param level0Compaction sorted runs in level 0 that start a compaction; more means less rewriting, slower
/// reads
/// @param level0Slowdown sorted runs in level 0 that slow writers down
/// @param level0Stop sorted runs in level 0 that stop writers
/// @param slowdownBytesPerSecond the rate writers are slowed down to
/// @param level1Bytes target size of level 1; each further level is `levelMultiplier` times as large
/// @param compactionBytesPerSecond bytes of entries that compaction merges per second while it is not behind; 0
/// for no limit.
///     Lower leaves disk and processor to requests, and tables pile up until it is behind
/// @param tableMemoryBytes memory that tables may take in the page cache; 0 for what the system has. Tables that are
///     larger together are read with that in mind, see [MemoryFit]
public record StoreOptions(
        Path directory,
        WalMode wal,
        Duration walInterval,
        Duration stallLimit,
        long memtableBytes,
        int frozenMemtablesMax,
        long tableBytes,
        int blockBytes,
        int bloomBitsPerKey,
        CompactionPolicyKind compaction,
        ReadMode read,
        Compression compression,
        int level0Compaction,
        int level0Slowdown,
        int level0Stop,
        long slowdownBytesPerSecond,
        long level1Bytes,
        int levelMultiplier,
        long compactionBytesPerSecond,
        long tableMemoryBytes) {

    /// Longest key, bytes: log and tables store the length in two, and leave one bit of them free.
    public static final int KEY_BYTES_MAX = (1 << 15) - 1;
    /// Longest value, bytes: a write-ahead log is mapped as one piece of at most 2 GiB.
    public static final int VALUE_BYTES_MAX = 1 << 30;

    public static final OptionRange WAL_INTERVAL_MILLIS = new OptionRange(1, 3_600_000);
    public static final OptionRange STALL_LIMIT_MILLIS = new OptionRange(0, 3_600_000);
    public static final OptionRange MEMTABLE_BYTES = new OptionRange(1 << 10, 1 << 30);
    public static final OptionRange FROZEN_MEMTABLES = new OptionRange(1, 64);
    public static final OptionRange TABLE_BYTES = new OptionRange(1 << 10, 1 << 30);
    public static final OptionRange BLOCK_BYTES = new OptionRange(64, 1 << 15);
    public static final OptionRange BLOOM_BITS = new OptionRange(0, 32);
    public static final OptionRange SLOWDOWN_BYTES_PER_SECOND = new OptionRange(1 << 10, 1L << 40);
    public static final OptionRange LEVEL1_BYTES = new OptionRange(1 << 10, 1L << 40);
    public static final OptionRange LEVEL_MULTIPLIER = new OptionRange(2, 100);
    public static final OptionRange COMPACTION_BYTES_PER_SECOND = new OptionRange(0, 1L << 40);
    public static final OptionRange TABLE_MEMORY_BYTES = new OptionRange(0, 1L << 50);
    public static final OptionRange LEVEL0_SLOWDOWN_RUNS = new OptionRange(2, 10_000);

    /// Compaction begins before writers are slowed down.
    public static OptionRange level0CompactionRuns(int slowdownRuns) {
        return new OptionRange(2, Math.min(1_000, slowdownRuns));
    }

    /// Writers are slowed down before they are stopped.
    public static OptionRange level0StopRuns(int slowdownRuns) {
        return new OptionRange(slowdownRuns, 10_000);
    }

    public StoreOptions {
        Objects.requireNonNull(directory, "directory");
        Objects.requireNonNull(wal, "wal");
        Objects.requireNonNull(walInterval, "walInterval");
        Objects.requireNonNull(stallLimit, "stallLimit");
        Objects.requireNonNull(compaction, "compaction");
        Objects.requireNonNull(read, "read");
        Objects.requireNonNull(compression, "compression");
        WAL_INTERVAL_MILLIS.check("walIntervalMillis", walInterval.toMillis());
        STALL_LIMIT_MILLIS.check("stallLimitMillis", stallLimit.toMillis());
        MEMTABLE_BYTES.check("memtableBytes", memtableBytes);
        FROZEN_MEMTABLES.check("frozenMemtablesMax", frozenMemtablesMax);
        TABLE_BYTES.check("tableBytes", tableBytes);
        BLOCK_BYTES.check("blockBytes", blockBytes);
        BLOOM_BITS.check("bloomBitsPerKey", bloomBitsPerKey);
        LEVEL0_SLOWDOWN_RUNS.check("level0Slowdown", level0Slowdown);
        level0CompactionRuns(level0Slowdown).check("level0Compaction", level0Compaction);
        level0StopRuns(level0Slowdown).check("level0Stop", level0Stop);
        SLOWDOWN_BYTES_PER_SECOND.check("slowdownBytesPerSecond", slowdownBytesPerSecond);
        LEVEL1_BYTES.check("level1Bytes", level1Bytes);
        LEVEL_MULTIPLIER.check("levelMultiplier", levelMultiplier);
        COMPACTION_BYTES_PER_SECOND.check("compactionBytesPerSecond", compactionBytesPerSecond);
        TABLE_MEMORY_BYTES.check("tableMemoryBytes", tableMemoryBytes);
    }

    /// The defaults for a store in `directory`.
    public static StoreOptions at(Path directory) {
        return new Builder(directory).build();
    }

    public Builder toBuilder() {
        return new Builder(this);
    }

    /// Options under construction; [#build] checks them.
    public static final class Builder {
        private final Path directory;
        private WalMode wal = WalMode.INTERVAL;
        private Duration walInterval = Duration.ofMillis(1_000);
        private Duration stallLimit = Duration.ofSeconds(10);
        private long memtableBytes = 64 << 20;
        private int frozenMemtablesMax = 2;
        private long tableBytes = 64 << 20;
        private int blockBytes = 4 << 10;
        private int bloomBitsPerKey = 10;
        private CompactionPolicyKind compaction = CompactionPolicyKind.LEVELED;
        private ReadMode read = ReadMode.MMAP;
        private Compression compression = Compression.NONE;
        private int level0Compaction = 4;
        private int level0Slowdown = 16;
        private int level0Stop = 32;
        private long slowdownBytesPerSecond = 16 << 20;
        private long level1Bytes = 256 << 20;
        private int levelMultiplier = 10;
        private long compactionBytesPerSecond;
        private long tableMemoryBytes;

        private Builder(Path directory) {
            this.directory = directory;
        }

        private Builder(StoreOptions o) {
            this(o.directory);
            wal = o.wal;
            walInterval = o.walInterval;
            stallLimit = o.stallLimit;
            memtableBytes = o.memtableBytes;
            frozenMemtablesMax = o.frozenMemtablesMax;
            tableBytes = o.tableBytes;
            blockBytes = o.blockBytes;
            bloomBitsPerKey = o.bloomBitsPerKey;
            compaction = o.compaction;
            read = o.read;
            compression = o.compression;
            level0Compaction = o.level0Compaction;
            level0Slowdown = o.level0Slowdown;
            level0Stop = o.level0Stop;
            slowdownBytesPerSecond = o.slowdownBytesPerSecond;
            level1Bytes = o.level1Bytes;
            levelMultiplier = o.levelMultiplier;
            compactionBytesPerSecond = o.compactionBytesPerSecond;
            tableMemoryBytes = o.tableMemoryBytes;
        }

        public Builder wal(WalMode value) {
            wal = value;
            return this;
        }

        public Builder walInterval(Duration value) {
            walInterval = value;
            return this;
        }

        public Builder stallLimit(Duration value) {
            stallLimit = value;
            return this;
        }

        public Builder memtableBytes(long value) {
            memtableBytes = value;
            return this;
        }

        public Builder frozenMemtablesMax(int value) {
            frozenMemtablesMax = value;
            return this;
        }

        public Builder tableBytes(long value) {
            tableBytes = value;
            return this;
        }

        public Builder blockBytes(int value) {
            blockBytes = value;
            return this;
        }

        public Builder bloomBitsPerKey(int value) {
            bloomBitsPerKey = value;
            return this;
        }

        public Builder compaction(CompactionPolicyKind value) {
            compaction = value;
            return this;
        }

        public Builder read(ReadMode value) {
            read = value;
            return this;
        }

        public Builder compression(Compression value) {
            compression = value;
            return this;
        }

        public Builder level0(int compactionRuns, int slowdownRuns, int stopRuns) {
            level0Compaction = compactionRuns;
            level0Slowdown = slowdownRuns;
            level0Stop = stopRuns;
            return this;
        }

        public Builder slowdownBytesPerSecond(long value) {
            slowdownBytesPerSecond = value;
            return this;
        }

        public Builder level1Bytes(long value) {
            level1Bytes = value;
            return this;
        }

        public Builder levelMultiplier(int value) {
            levelMultiplier = value;
            return this;
        }

        public Builder compactionBytesPerSecond(long value) {
            compactionBytesPerSecond = value;
            return this;
        }

        public Builder tableMemoryBytes(long value) {
            tableMemoryBytes = value;
            return this;
        }

        public StoreOptions build() {
            return new StoreOptions(
                    directory,
                    wal,
                    walInterval,
                    stallLimit,
                    memtableBytes,
                    frozenMemtablesMax,
                    tableBytes,
                    blockBytes,
                    bloomBitsPerKey,
                    compaction,
                    read,
                    compression,
                    level0Compaction,
                    level0Slowdown,
                    level0Stop,
                    slowdownBytesPerSecond,
                    level1Bytes,
                    levelMultiplier,
                    compactionBytesPerSecond,
                    tableMemoryBytes);
        }
    }
}
