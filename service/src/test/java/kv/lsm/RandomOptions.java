package kv.lsm;

import java.nio.file.Path;
import java.time.Duration;
import java.util.SplittableRandom;

/// Options drawn at random, small enough that flushes and compactions happen within a few hundred writes.
final class RandomOptions {
    /// Only a store that hangs lets a write wait for so long. A merge into tables of 2 KiB syncs hundreds of
    /// them, which on a busy disk takes longer than the ten seconds after which a write fails by default.
    private static final Duration STALL_LIMIT = Duration.ofMinutes(5);

    private RandomOptions() {}

    static StoreOptions draw(SplittableRandom random, Path directory) {
        int level0Compaction = random.nextInt(2, 5);
        int slowdown = level0Compaction + random.nextInt(2, 10);
        return StoreOptions.at(directory).toBuilder()
                .wal(wal(random))
                .walInterval(Duration.ofMillis(random.nextInt(1, 20)))
                .stallLimit(STALL_LIMIT)
                .memtableBytes(random.nextInt(1 << 13, 1 << 16))
                .frozenMemtablesMax(random.nextInt(1, 4))
                .tableBytes(random.nextInt(1 << 11, 1 << 16))
                .blockBytes(1 << random.nextInt(6, 14))
                .bloomBitsPerKey(random.nextInt(4) == 0 ? 0 : random.nextInt(1, 20))
                .compaction(pick(random, CompactionPolicyKind.values()))
                .read(pick(random, ReadMode.values()))
                .compression(pick(random, Compression.values()))
                .level0(level0Compaction, slowdown, slowdown + random.nextInt(1, 10))
                .slowdownBytesPerSecond(1 << 24)
                .level1Bytes(random.nextInt(1 << 13, 1 << 17))
                .levelMultiplier(random.nextInt(2, 6))
                .compactionBytesPerSecond(random.nextInt(3) == 0 ? 1 << 20 : 0)
                .tableMemoryBytes(tableMemory(random))
                .build();
    }

    /// What the system has, next to nothing, or so much that tables fit now and then.
    private static long tableMemory(SplittableRandom random) {
        return switch (random.nextInt(3)) {
            case 0 -> 0;
            case 1 -> 1;
            default -> random.nextInt(1 << 12, 1 << 18);
        };
    }

    /// A real sync takes milliseconds, so fewer of the stores sync each write.
    private static WalMode wal(SplittableRandom random) {
        WalMode wal = pick(random, WalMode.values());
        return wal == WalMode.ALWAYS && random.nextInt(3) > 0 ? WalMode.INTERVAL : wal;
    }

    static <T> T pick(SplittableRandom random, T[] values) {
        return values[random.nextInt(values.length)];
    }
}
