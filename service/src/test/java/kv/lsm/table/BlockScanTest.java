package kv.lsm.table;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.LongConsumer;
import kv.lsm.Compression;
import kv.lsm.ReadMode;
import kv.lsm.Records;
import kv.lsm.TimeSlices;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.disk.FileCopy;
import kv.lsm.disk.ReadFile;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// What is found of a table whose index is lost.
class BlockScanTest {
    private static final Path FILE = Path.of("/faulty/1");
    private static final int DAMAGED_BYTES = 1 << 20;

    private final Allocator allocator = new Allocator();
    private final FaultyDisk disk = new FaultyDisk();

    private static byte[] key(int i) {
        return Records.bytes("key-%05d".formatted(i));
    }

    private void write(NavigableMap<byte[], byte[]> entries, Compression compression) throws IOException {
        TableOptions options = new TableOptions(4096, 10, compression, ReadMode.MMAP);
        try (SSTableWriter writer = new SSTableWriter(disk, FILE, options, allocator, TimeSlices.endless());
                Records records = new Records(entries)) {
            while (records.next()) {
                writer.add(records.keyAddress(), records.keyLength(), records.valueAddress(), records.valueLength());
            }
            writer.finish();
        }
    }

    /// The number of entries that are found.
    ///
    /// @param damage of the file's bytes
    private long found(LongConsumer damage) throws IOException {
        long entries = 0;
        try (FileCopy copy = FileCopy.of(disk, FILE, allocator)) {
            ReadFile file = copy.reader();
            damage.accept(file.map());
            Memory.fill(file.map() + file.bytes() - SSTableFormat.FOOTER_BYTES, SSTableFormat.FOOTER_BYTES, (byte) 7);
            try (BlockScan scan = new BlockScan(file, allocator)) {
                while (scan.next()) {
                    entries += DataBlock.count(scan.payload());
                }
            }
        }
        return entries;
    }

    /// A compressed block of more than 256 KiB was none.
    @ParameterizedTest
    @EnumSource(Compression.class)
    void everyBlockIsFoundAlsoOneOfALargeValue(Compression compression) throws IOException {
        NavigableMap<byte[], byte[]> entries = new TreeMap<>(Arrays::compareUnsigned);
        Random random = new Random(1);
        for (int i = 0; i < 300; i++) {
            byte[] value = new byte[i % 100 == 50 ? 1 << 20 : random.nextInt(2_000)];
            random.nextBytes(value);
            Arrays.fill(value, 0, value.length / 3, (byte) i); // so that compression pays
            entries.put(key(i), value);
        }
        write(entries, compression);
        assertThat(found(file -> {})).isEqualTo(entries.size());
    }

    /// Between two blocks there may be anything, as values that a lost block held. It took 47 s to search a mebibyte
    /// for compressed blocks, each end of which was tried, and as long as for the whole table at each place that
    /// looks like a block.
    @Test
    @Timeout(60)
    void whatLooksLikeABlockAtEachPlaceIsPassedOverSoon() throws IOException {
        NavigableMap<byte[], byte[]> entries = new TreeMap<>(Arrays::compareUnsigned);
        byte[] large = new byte[32 << 20];
        for (int i = 0; i < 100; i++) {
            entries.put(key(i), i == 50 ? large : new byte[1_000]);
        }
        write(entries, Compression.NONE);
        byte[] damage = new byte[DAMAGED_BYTES];
        for (String kind : new String[] {"random", "numbers", "compressed"}) {
            ByteBuffer bytes = ByteBuffer.wrap(damage).order(ByteOrder.LITTLE_ENDIAN);
            new Random(1).nextBytes(damage);
            while (!kind.equals("random") && bytes.hasRemaining()) {
                // as many entries, and values of 26 MB; or a length, and a literal with a match of it
                bytes.putInt(kind.equals("numbers") ? 400 : 0x0001_0010);
            }
            // in the large value
            assertThat(found(file -> Memory.copy(damage, file + (64 << 10))))
                    .as(kind)
                    .isPositive();
        }
    }
}
