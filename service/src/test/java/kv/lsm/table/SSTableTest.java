package kv.lsm.table;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import kv.lsm.Compression;
import kv.lsm.CorruptionException;
import kv.lsm.ReadMode;
import kv.lsm.Records;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Checksum;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;
import org.junit.jupiter.api.Test;

class SSTableTest {
    private static final int KEYS = 500;
    private static final Path FILE = Path.of("/faulty/1");

    private final Allocator allocator = new Allocator();
    private final BlockBuffers buffers = new BlockBuffers(allocator);
    private final FaultyDisk disk = new FaultyDisk();

    private static byte[] key(int i) {
        return Records.bytes("key-%05d".formatted(i));
    }

    private void write(ReadMode read, Compression compression) throws IOException {
        NavigableMap<byte[], byte[]> entries = new TreeMap<>(Arrays::compareUnsigned);
        for (int i = 0; i < KEYS; i++) {
            entries.put(key(i), Records.bytes("value of %d".formatted(i).repeat(i % 7)));
        }
        TableOptions options = new TableOptions(1024, 10, compression, read);
        try (SSTableWriter writer = new SSTableWriter(disk, FILE, options, allocator);
                Records records = new Records(entries)) {
            while (records.next()) {
                writer.add(records.keyAddress(), records.keyLength(), records.valueAddress(), records.valueLength());
            }
            writer.finish();
        }
    }

    private SSTable opened(ReadMode read) throws IOException {
        return SSTable.open(disk, FILE, read, allocator);
    }

    private byte[] get(SSTable table, int i) {
        return table.get(key(i), Keys.hash(key(i)), buffers);
    }

    private static byte[] value(int i) {
        return Records.bytes("value of %d".formatted(i).repeat(i % 7));
    }

    @Test
    void everyWayToWriteATableCanBeReadInEveryWay() throws Exception {
        for (ReadMode written : ReadMode.values()) {
            for (Compression compression : Compression.values()) {
                write(written, compression);
                for (ReadMode read : ReadMode.values()) {
                    SSTable table = opened(read);
                    for (int i = 0; i < KEYS; i++) {
                        assertThat(get(table, i)).as("%s %s %s %d", written, compression, read, i).isEqualTo(value(i));
                        assertThat(get(table, KEYS + i)).isNull();
                    }
                    boolean all = written == ReadMode.MMAP && compression == Compression.NONE && read == ReadMode.MMAP;
                    assertThat(table.hasHashIndex()).isEqualTo(all);
                    table.release();
                }
            }
        }
    }

    @Test
    void theFilterIsAskedWhileMostKeysAreAbsent() throws Exception {
        write(ReadMode.MMAP, Compression.NONE);
        SSTable table = opened(ReadMode.MMAP);
        assertThat(table.asksFilter()).isTrue();
        for (int i = 0; i < 20_000; i++) {
            table.learn(Keys.hash(key(i)), i % 10 == 0);
        }
        assertThat(table.asksFilter()).isFalse();
        for (int i = 0; i < 20_000; i++) {
            table.learn(Keys.hash(key(i)), i % 10 != 0);
        }
        assertThat(table.asksFilter()).isTrue();
        table.release();
    }

    @Test
    void withoutAHashIndexTheFilterIsAlwaysAsked() throws Exception {
        write(ReadMode.PREAD, Compression.NONE);
        SSTable table = opened(ReadMode.PREAD);
        for (int i = 0; i < 20_000; i++) {
            table.learn(Keys.hash(key(i)), false);
        }
        assertThat(table.asksFilter()).isTrue();
        table.release();
    }

    /// The checksums are right, so this is a file that something else wrote: the process must not read memory that is not the table's.
    @Test
    void aHashIndexOfSomethingElseGivesNoOtherValueAndNoCrash() throws Exception {
        long seed = new SplittableRandom().nextLong();
        SplittableRandom random = new SplittableRandom(seed);
        write(ReadMode.MMAP, Compression.NONE);
        byte[] good = disk.content("1");
        SSTableFormat.Footer footer = footer(good);
        for (int round = 0; round < 30; round++) {
            byte[] bad = good.clone();
            int lines = (int) (footer.hashIndexOffset() + HashIndex.HEADER_BYTES);
            for (int at = lines; at < lines + footer.hashIndexBytes() - HashIndex.HEADER_BYTES; at++) {
                if (at % 64 >= 16 && random.nextInt(3) == 0) {
                    bad[at] = (byte) random.nextInt(256);
                }
            }
            disk.setContent("1", withChecksums(bad, footer));
            SSTable table = opened(ReadMode.MMAP);
            for (int i = 0; i < KEYS; i++) {
                try {
                    assertThat(get(table, i)).as("seed %d, key %d", seed, i).isIn(null, value(i));
                } catch (CorruptionException e) {
                    assertThat(e).hasMessageContaining("hash index names");
                }
            }
            table.release();
        }
    }

    private static SSTableFormat.Footer footer(byte[] table) {
        byte[] footer = Arrays.copyOfRange(table, table.length - SSTableFormat.FOOTER_BYTES, table.length);
        return SSTableFormat.readFooter(Records.nativeCopy(footer));
    }

    private static byte[] withChecksums(byte[] table, SSTableFormat.Footer footer) {
        long copy = Records.nativeCopy(table);
        int crc = Checksum.of(copy + footer.hashIndexOffset(), footer.hashIndexBytes());
        SSTableFormat.writeFooter(
                copy + table.length - SSTableFormat.FOOTER_BYTES,
                new SSTableFormat.Footer(
                        footer.indexOffset(),
                        footer.indexBytes(),
                        footer.filterOffset(),
                        footer.filterBytes(),
                        footer.hashIndexOffset(),
                        footer.hashIndexBytes(),
                        footer.entries(),
                        footer.indexCrc(),
                        footer.filterCrc(),
                        crc));
        return Memory.copyOf(copy, table.length);
    }
}
