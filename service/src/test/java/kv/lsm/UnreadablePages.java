package kv.lsm;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;

/// Reads a store until the JVM has compiled how, cuts its mapped files short, and reads all of it again: each
/// read must end with a [StoreException]. A process of its own, since what is looked for would end it.
///
/// ```
/// java … kv.lsm.UnreadablePages DIRECTORY SEED
/// ```
///
/// Ends with 0 when nothing was answered from pages that are gone.
final class UnreadablePages {
    private static final int KEYS = 600;
    private static final int WARM_UP_ROUNDS = 60;
    private static final int RANGE_ENTRIES = 20;

    private final SplittableRandom random;
    private final int[] valueBytes;
    private int wrong;
    private int reads;

    private UnreadablePages(long seed) {
        random = new SplittableRandom(seed);
        int bytesMax = random.nextBoolean() ? 60 : 2_000;
        valueBytes = random.ints(KEYS, 0, bytesMax).toArray();
    }

    public static void main(String[] args) throws Exception {
        Path directory = Path.of(args[0]);
        int wrong = 0;
        for (String kind : List.of("tables", "compressed", "log")) {
            UnreadablePages pages = new UnreadablePages(Long.parseLong(args[1]) + kind.hashCode());
            pages.run(directory.resolve(kind), kind);
            System.out.println(kind + ": reads=" + pages.reads + ", wrong=" + pages.wrong);
            wrong += pages.wrong;
        }
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
            store.put(key(i), new byte[valueBytes[i]]);
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
                channel.truncate(0);
            }
        }
        for (int round = 0; round < 3; round++) {
            readAll(store, true);
        }
    }

    private void readAll(Store store, boolean isCut) {
        for (int i = 0; i < KEYS; i++) {
            int number = random.nextInt(KEYS);
            expect(isCut, () -> {
                byte[] value = store.get(key(number));
                return value != null && value.length == valueBytes[number];
            });
            expect(isCut, () -> range(store, number));
        }
    }

    private boolean range(Store store, int first) {
        try (RangeCursor cursor = store.range(key(first), null)) {
            int number = first;
            for (; number < first + RANGE_ENTRIES && cursor.next(); number++) {
                if (ByteBuffer.wrap(cursor.key()).getInt() != number || cursor.value().length != valueBytes[number]) {
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
            isAsExpected = read.isRight() && !isCut;
        } catch (CorruptionException e) {
            isAsExpected = false;
        } catch (StoreException e) {
            isAsExpected = isCut && e.getMessage().contains("could not be read");
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
