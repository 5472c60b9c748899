package kv.lsm.table;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import kv.lsm.Compression;
import kv.lsm.CorruptionException;
import kv.lsm.ReadMode;
import kv.lsm.Records;
import kv.lsm.TimeSlices;
import kv.lsm.disk.Disk;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.disk.ForwardingDisk;
import kv.lsm.disk.ForwardingReadFile;
import kv.lsm.disk.ForwardingWriteFile;
import kv.lsm.disk.ReadFile;
import kv.lsm.disk.WriteFile;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Checksum;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;
import kv.lsm.memory.NativeBuffer;
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
            entries.put(key(i), value(i));
        }
        write(entries, read, compression);
    }

    private void write(NavigableMap<byte[], byte[]> entries, ReadMode read, Compression compression)
            throws IOException {
        write(disk, entries, read, compression);
    }

    private void write(Disk to, NavigableMap<byte[], byte[]> entries, ReadMode read, Compression compression)
            throws IOException {
        TableOptions options = new TableOptions(1024, 10, compression, read);
        try (SSTableWriter writer = new SSTableWriter(to, FILE, options, allocator, TimeSlices.endless());
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
                        assertThat(get(table, i))
                                .as("%s %s %s %d", written, compression, read, i)
                                .isEqualTo(value(i));
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
    void nothingIsWrittenInPiecesThatOthersWouldWaitLongFor() throws Exception {
        int keys = 200_000; // whose index, filter and hash index are more than 2 MiB
        NavigableMap<byte[], byte[]> entries = new TreeMap<>(Arrays::compareUnsigned);
        for (int i = 0; i < keys; i++) {
            entries.put(key(i), new byte[i == 0 ? 300_000 : 10]);
        }
        List<Integer> sizes = new ArrayList<>();
        Disk watched = new ForwardingDisk(disk) {
            @Override
            public WriteFile create(Path path) throws IOException {
                return new ForwardingWriteFile(super.create(path)) {
                    @Override
                    public void write(ByteBuffer buffer) throws IOException {
                        sizes.add(buffer.remaining());
                        super.write(buffer);
                    }
                };
            }
        };
        write(watched, entries, ReadMode.MMAP, Compression.NONE);
        SSTable table = opened(ReadMode.MMAP);
        assertThat(table.hasHashIndex()).isTrue();
        assertThat(get(table, keys - 1)).hasSize(10);
        table.release();
        List<Integer> last = sizes.stream().dropWhile(size -> size == 128 << 10).toList();
        assertThat(last).hasSizeBetween(2, 3).allMatch(size -> size <= 2 << 20);
        long end = 0;
        for (int size : sizes.subList(0, sizes.size() - 1)) {
            end += size;
            assertThat(size == 128 << 10 || end % (2 << 20) == 0)
                    .as("a piece of the last part ends with a huge page")
                    .isTrue();
        }
    }

    /// A thread that looks at memory tells all tables, and so does one that made new ones.
    @Test
    void whatSeveralThreadsTellOfATableIsTakenOneAfterTheOther() throws Exception {
        write(ReadMode.MMAP, Compression.NONE);
        CountDownLatch advising = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        List<Boolean> advised = new CopyOnWriteArrayList<>();
        ReadFile slow = new ForwardingReadFile(disk.open(FILE)) {
            @Override
            public void expectRandomReads(long bytes, boolean random) {
                if (random) {
                    advising.countDown();
                    await(goOn);
                }
                advised.add(random);
            }
        };
        SSTable table = SSTable.open(disk, FILE, slow, ReadMode.MMAP, allocator);
        Thread first = Thread.ofPlatform().start(() -> table.expectMisses(true, true));
        await(advising);
        Thread second = Thread.ofPlatform().start(() -> table.expectMisses(false, false));
        while (second.isAlive() && second.getState() != Thread.State.BLOCKED) {
            Thread.sleep(1);
        }
        goOn.countDown();
        first.join();
        second.join();
        assertThat(advised).containsExactly(true, false);
        table.release();
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void theFilterIsAskedWhileMostKeysAreAbsent() throws Exception {
        write(ReadMode.MMAP, Compression.NONE);
        SSTable table = opened(ReadMode.MMAP);
        assertThat(table.shouldAskFilter()).isTrue();
        for (int i = 0; i < 20_000; i++) {
            table.sampleAbsence(Keys.hash(key(i)), i % 10 == 0);
        }
        assertThat(table.shouldAskFilter()).isFalse();
        for (int i = 0; i < 20_000; i++) {
            table.sampleAbsence(Keys.hash(key(i)), i % 10 != 0);
        }
        assertThat(table.shouldAskFilter()).isTrue();
        table.release();
    }

    @Test
    void withoutAHashIndexTheFilterIsAlwaysAsked() throws Exception {
        write(ReadMode.PREAD, Compression.NONE);
        SSTable table = opened(ReadMode.PREAD);
        for (int i = 0; i < 20_000; i++) {
            table.sampleAbsence(Keys.hash(key(i)), false);
        }
        assertThat(table.shouldAskFilter()).isTrue();
        table.release();
    }

    /// A table of one key whose hash index leads from another key to `position`; all checksums are right.
    private void writeForeign(byte[] value, byte[] other, long position, int positionBits) throws IOException {
        NavigableMap<byte[], byte[]> entries = new TreeMap<>(Arrays::compareUnsigned);
        entries.put(key(0), value);
        write(entries, ReadMode.MMAP, Compression.NONE);
        byte[] table = disk.content("1");
        SSTableFormat.Footer footer = footer(table);
        NativeBuffer hashes = new NativeBuffer(allocator, 64);
        hashes.appendLong(Keys.hash(other));
        NativeBuffer positions = new NativeBuffer(allocator, 64);
        positions.appendInt((int) position);
        NativeBuffer part = new NativeBuffer(allocator, 256);
        HashIndex.write(hashes, positions, 1L << positionBits, part, TimeSlices.endless());
        assertThat(part.size()).isEqualTo(footer.hashIndexBytes());
        System.arraycopy(
                Memory.copyOf(part.address(), (int) part.size()), 0, table, (int) footer.hashIndexOffset(), (int)
                        part.size());
        disk.setContent("1", withChecksums(table, footer));
    }

    @Test
    void aHashIndexThatLeadsToWhatIsNoEntryIsSaidToBeCorrupt() throws Exception {
        for (int length : new int[] {1 << 30, -5, Integer.MIN_VALUE}) {
            byte[] value = new byte[300];
            ByteBuffer.wrap(value)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putShort((short) key(1).length)
                    .putInt(length)
                    .put(key(1));
            int valuePosition =
                    DataBlock.COUNT_BYTES + DataBlock.OFFSET_BYTES + DataBlock.ENTRY_HEADER_BYTES + key(0).length;
            writeForeign(value, key(1), valuePosition, 10);
            SSTable table = opened(ReadMode.MMAP);
            assertThatThrownBy(() -> get(table, 1))
                    .as("length %d", length)
                    .isInstanceOf(CorruptionException.class)
                    .hasMessageContaining("the hash index names what is no entry");
            table.release();
        }
    }

    @Test
    void aHashIndexThatLeadsBehindTheDataFindsNothing() throws Exception {
        for (int bits : new int[] {9, 20, 32}) {
            for (long before : new long[] {1, 2, 7}) {
                writeForeign(new byte[300], key(1), (1L << bits) - before, bits);
                SSTable table = opened(ReadMode.MMAP);
                assertThat(get(table, 1)).isNull();
                table.release();
            }
        }
    }

    @Test
    void aFooterWhosePartsDoNotFollowOneAnotherIsRefused() throws Exception {
        write(ReadMode.MMAP, Compression.NONE);
        byte[] good = disk.content("1");
        SSTableFormat.Footer f = footer(good);
        long more = 1L << 30;
        long most = Long.MAX_VALUE;
        for (long[] parts : new long[][] {
            {-64, f.indexBytes(), f.filterOffset(), f.filterBytes(), f.hashIndexOffset(), f.hashIndexBytes()},
            {f.indexOffset(), -1, f.filterOffset(), f.filterBytes(), f.hashIndexOffset(), f.hashIndexBytes()},
            {f.indexOffset(), most, f.filterOffset(), f.filterBytes(), f.hashIndexOffset(), f.hashIndexBytes()},
            {
                f.indexOffset(),
                f.indexBytes(),
                f.filterOffset(),
                more,
                f.filterOffset() + more,
                f.hashIndexBytes() - more + f.filterBytes()
            },
            {
                f.indexOffset(),
                f.indexBytes(),
                f.filterOffset(),
                -64,
                f.filterOffset() - 64,
                f.hashIndexBytes() + 64 + f.filterBytes()
            },
            {
                f.indexOffset(),
                f.indexBytes(),
                f.filterOffset(),
                f.filterBytes(),
                f.hashIndexOffset(),
                f.hashIndexBytes() + 64
            },
        }) {
            SSTableFormat.Footer bad = new SSTableFormat.Footer(
                    parts[0],
                    parts[1],
                    parts[2],
                    parts[3],
                    parts[4],
                    parts[5],
                    f.entries(),
                    f.indexCrc(),
                    f.filterCrc(),
                    f.hashIndexCrc(),
                    f.version());
            disk.setContent("1", withFooter(good, bad));
            assertThatThrownBy(() -> opened(ReadMode.MMAP))
                    .isInstanceOf(CorruptionException.class)
                    .hasMessageContaining("the footer does not fit the file");
        }
    }

    @Test
    void aTableThatCannotBeOpenedKeepsNoMemory() throws Exception {
        write(ReadMode.MMAP, Compression.NONE);
        byte[] table = disk.content("1");
        table[(int) footer(table).hashIndexOffset() + 70] ^= 1;
        disk.setContent("1", table);
        long before = allocator.allocatedBytes();
        assertThatThrownBy(() -> opened(ReadMode.MMAP))
                .hasMessageContaining("the hash index does not match its checksum");
        assertThat(allocator.allocatedBytes()).isEqualTo(before);
        opened(ReadMode.PREAD).release(); // which does not use it
    }

    private static SSTableFormat.Footer footer(byte[] table) {
        byte[] footer = Arrays.copyOfRange(table, table.length - SSTableFormat.FOOTER_BYTES, table.length);
        return SSTableFormat.readFooter(Records.nativeCopy(footer));
    }

    private static byte[] withFooter(byte[] table, SSTableFormat.Footer footer) {
        long copy = Records.nativeCopy(table);
        SSTableFormat.writeFooter(copy + table.length - SSTableFormat.FOOTER_BYTES, footer);
        return Memory.copyOf(copy, table.length);
    }

    private static byte[] withChecksums(byte[] table, SSTableFormat.Footer footer) {
        int crc = Checksum.of(Records.nativeCopy(table) + footer.hashIndexOffset(), footer.hashIndexBytes());
        return withFooter(
                table,
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
                        crc,
                        footer.version()));
    }
}
