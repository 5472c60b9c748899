package kv.lsm;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;

/// Uses a store until the JVM has compiled how, cuts its mapped files short, and uses it again: each read must
/// give what was written or end with a [StoreException], and so must each write. A process of its own, since
/// what is looked for would end it.
///
/// ```
/// java … kv.lsm.UnreadablePages DIRECTORY SEED
/// ```
///
/// Ends with 0 when nothing went wrong.
final class UnreadablePages {
    private static final int KEYS = 600;
    private static final int WARM_UP_ROUNDS = 60;
    private static final int ROUNDS = 10;
    private static final int RANGE_ENTRIES = 20;
    private static final int PAGE_BYTES = 4096;
    private static final int WARM_UP_PUTS = 60_000;

    private final SplittableRandom random;
    private final byte[][] values = new byte[KEYS][];
    private int wrong;
    private int reads;
    private int failures;

    private UnreadablePages(long seed) {
        random = new SplittableRandom(seed);
        int bytesMax = random.nextBoolean() ? 60 : 2_000;
        for (int i = 0; i < KEYS; i++) {
            values[i] = new byte[random.nextInt(bytesMax)];
            random.nextBytes(values[i]); // or they would be compressed to less than a page
        }
    }

    public static void main(String[] args) throws Exception {
        Path directory = Path.of(args[0]);
        int wrong = 0;
        for (String kind : List.of("tables", "compressed", "log")) {
            UnreadablePages pages = new UnreadablePages(Long.parseLong(args[1]) + kind.hashCode());
            pages.run(directory.resolve(kind), kind);
            // some of the pages are gone, and some are there
            wrong += pages.wrong + (pages.failures == 0 || pages.failures == pages.reads ? 1 : 0);
            System.out.println(kind + ": reads=" + pages.reads + ", failures=" + pages.failures + ", wrong=" + wrong);
        }
        wrong += wrongPuts(directory.resolve("put"));
        System.out.println("put: wrong=" + wrong);
        System.exit(wrong == 0 ? 0 : 1); // closing a store whose log is cut would be told as an error
    }

    private void run(Path directory, String kind) throws IOException {
        StoreOptions options = StoreOptions.at(directory).toBuilder()
                .wal(WalMode.OS)
                .read(ReadMode.MMAP)
                .compression(kind.equals("compressed") ? Compression.LZ4 : Compression.NONE)
                .compaction(CompactionPolicyKind.NONE)
                .tableMemoryBytes(1 << 30)
                .build();
        LsmStore store = (LsmStore) LsmStore.open(options);
        for (int i = 0; i < KEYS; i++) {
            store.put(key(i), values[i]);
        }
        String cut = ".log";
        if (!kind.equals("log")) {
            store.administration().flush(() -> false);
            cut = ".table";
        }
        for (int round = 0; round < WARM_UP_ROUNDS; round++) {
            readAll(store, false);
        }
        for (Path file : filesLike(directory, cut)) {
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
                // of a log most is zeros
                channel.truncate(kind.equals("log") ? 2 * PAGE_BYTES : channel.size() / 2 & -PAGE_BYTES);
            }
        }
        for (int round = 0; round < ROUNDS; round++) {
            readAll(store, true);
        }
    }

    /// Writes into pages that nobody has written yet and that are gone: 1 unless it ends writing.
    private static int wrongPuts(Path directory) throws IOException {
        StoreOptions options = StoreOptions.at(directory).toBuilder()
                .wal(WalMode.OS)
                .memtableBytes(64 << 20)
                .build();
        LsmStore store = (LsmStore) LsmStore.open(options);
        for (int i = 0; i < WARM_UP_PUTS; i++) {
            store.put(key(i), new byte[100]);
        }
        Path log = filesLike(directory, ".log").stream().sorted().findFirst().orElseThrow();
        try (FileChannel channel = FileChannel.open(log, StandardOpenOption.WRITE)) {
            channel.truncate((WARM_UP_PUTS * 128L + 4 * PAGE_BYTES) & -PAGE_BYTES);
        }
        try {
            for (int i = 0; i < WARM_UP_PUTS; i++) {
                store.put(key(WARM_UP_PUTS + i), new byte[100]);
            }
            return 1;
        } catch (StoreFailedException e) {
            return store.isWritable() ? 1 : 0;
        }
    }

    private void readAll(Store store, boolean isCut) {
        for (int i = 0; i < KEYS; i++) {
            int number = random.nextInt(KEYS);
            expect(isCut, () -> {
                byte[] value = store.get(key(number));
                return Arrays.equals(value, values[number]);
            });
            expect(isCut, () -> range(store, number));
        }
    }

    private boolean range(Store store, int first) {
        try (RangeCursor cursor = store.range(key(first), null)) {
            int number = first;
            for (; number < first + RANGE_ENTRIES && cursor.next(); number++) {
                if (ByteBuffer.wrap(cursor.key()).getInt() != number
                        || !Arrays.equals(cursor.value(), values[number])) {
                    return false;
                }
            }
            return number == Math.min(KEYS, first + RANGE_ENTRIES);
        }
    }

    private interface Read {
        boolean isRight();
    }

    private void expect(boolean isCut, Read read) {
        reads++;
        boolean isAsExpected;
        try {
            isAsExpected = read.isRight();
        } catch (CorruptionException | InternalError e) { // the latter: too late for the store to tell of it
            isAsExpected = false;
        } catch (StoreException e) {
            isAsExpected = isCut && e.getMessage().contains("could not be read");
            failures++;
        }
        wrong += isAsExpected ? 0 : 1;
    }

    private static byte[] key(int number) {
        return ByteBuffer.allocate(Integer.BYTES).putInt(number).array();
    }

    private static List<Path> filesLike(Path directory, String suffix) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> file.toString().endsWith(suffix)).toList();
        }
    }
}
