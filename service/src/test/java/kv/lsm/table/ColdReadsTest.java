package kv.lsm.table;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import kv.lsm.Compression;
import kv.lsm.ReadMode;
import kv.lsm.Records;
import kv.lsm.StoreException;
import kv.lsm.TimeSlices;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.disk.ForwardingReadFile;
import kv.lsm.disk.ReadFile;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Keys;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Tables on a disk of which one page in three is not in memory, another one each time.
class ColdReadsTest {
    private static final int KEYS = 400;
    /// Enough for lines that are full at the end of a page.
    private static final int MANY_KEYS = 20_000;
    private static final int ROUNDS = 5;
    private static final Path FILE = Path.of("/faulty/1");

    private final Allocator allocator = new Allocator();
    private final BlockBuffers buffers = new BlockBuffers(allocator);
    private final FaultyDisk disk = new FaultyDisk();

    @AfterEach
    void allMemoryIsGivenBack() {
        buffers.close();
        assertThat(allocator.allocatedBytes()).isZero();
    }

    private static byte[] key(int i) {
        return Records.bytes("key-%05d".formatted(i));
    }

    /// Some longer than what is read of an entry at first, some longer than a block.
    private static byte[] value(int i) {
        return Records.bytes("value of %d ".formatted(i).repeat(i % 50 == 0 ? 300 : i % 20));
    }

    private static NavigableMap<byte[], byte[]> entries() {
        NavigableMap<byte[], byte[]> entries = new TreeMap<>(Arrays::compareUnsigned);
        for (int i = 0; i < KEYS; i++) {
            entries.put(key(i), value(i));
        }
        return entries;
    }

    private final LongAdder missed = new LongAdder();

    private SSTable table(ReadMode read, Compression compression) throws IOException {
        write(entries(), read, compression);
        return SSTable.open(disk, FILE, read, allocator);
    }

    private void write(NavigableMap<byte[], byte[]> entries, ReadMode read, Compression compression)
            throws IOException {
        TableOptions options = new TableOptions(1024, 10, compression, read);
        try (SSTableWriter writer = new SSTableWriter(disk, FILE, options, allocator, TimeSlices.endless());
                Records records = new Records(entries)) {
            while (records.next()) {
                writer.add(records.keyAddress(), records.keyLength(), records.valueAddress(), records.valueLength());
            }
            writer.finish();
        }
    }

    private byte[] get(SSTable table, byte[] key, boolean mayWait) {
        return table.getCold(key, Keys.hash(key), buffers, mayWait, missed);
    }

    @Test
    void whatIsFoundDoesNotDependOnWhatIsInMemory() throws Exception {
        for (ReadMode read : ReadMode.values()) {
            for (Compression compression : Compression.values()) {
                SSTable table = table(read, compression);
                table.expectMisses(true, true);
                int waits = 0;
                for (int i = 0; i < ROUNDS * KEYS; i++) {
                    byte[] key = key(i % KEYS);
                    byte[] tried = get(table, key, false);
                    if (tried == SSTable.NOT_CACHED) {
                        waits++;
                        tried = get(table, key, true);
                    }
                    assertThat(tried)
                            .as("%s %s %d", read, compression, i % KEYS)
                            .isEqualTo(value(i % KEYS));
                    assertThat(get(table, key(KEYS + i), true)).isNull();
                }
                assertThat(waits).as("%s %s", read, compression).isPositive();
                table.release();
            }
        }
    }

    @Test
    void aThreadThatMayNotWaitReadsNothingFromTheDisk() throws Exception {
        for (Compression compression : Compression.values()) {
            SSTable table = table(ReadMode.MMAP, compression);
            table.expectMisses(true, true);
            disk.setFaults((count, what) -> what.equals("read"));
            for (int i = 0; i < KEYS; i++) {
                byte[] found = get(table, key(i), false);
                if (found != SSTable.NOT_CACHED) {
                    assertThat(found).isEqualTo(value(i));
                }
                table.isFilterThere(Keys.hash(key(i)), buffers, false, missed);
            }
            disk.setFaults(FaultyDisk.NONE);
            table.release();
        }
    }

    /// What is not in memory comes by reads, which can fail, and each counts.
    @Test
    void aThreadThatMayWaitFaultsNoPageInOfFilterAndHashIndex() throws Exception {
        SSTable table = table(ReadMode.MMAP, Compression.NONE);
        table.expectMisses(true, true);
        disk.setFaults((count, what) -> what.equals("read"));
        int failed = 0;
        for (int i = 0; i < KEYS; i++) {
            long hash = Keys.hash(key(KEYS + i)); // absent: no entry is read
            try {
                assertThat(table.isFilterThere(hash, buffers, true, missed)).isTrue();
                table.getCold(key(KEYS + i), hash, buffers, true, missed);
            } catch (StoreException e) {
                assertThat(e).hasMessageContaining("cannot read a table");
                failed++;
            }
        }
        assertThat(failed).isGreaterThan(KEYS / 8);
        assertThat(missed.sum()).as("reads that were done").isZero();
        disk.setFaults(FaultyDisk.NONE);
        for (int i = 0; i < KEYS; i++) {
            table.isFilterThere(Keys.hash(key(i)), buffers, true, missed);
        }
        assertThat(missed.sum()).isEqualTo(disk.calls()).isPositive();
        table.release();
    }

    /// A mapped table of whose hash index one page is in memory at a time, or all of them.
    private static final class OnePage extends ForwardingReadFile {
        private final long dataBytes;
        /// In the file; negative for all.
        private long page = -1;

        OnePage(ReadFile file, long dataBytes) {
            super(file);
            this.dataBytes = dataBytes;
        }

        @Override
        public boolean isCached(long position, long bytes) {
            long end = position + bytes;
            boolean isOnPage = position / Allocator.PAGE_BYTES == page && (end - 1) / Allocator.PAGE_BYTES == page;
            return page < 0 || end <= dataBytes || isOnPage;
        }
    }

    /// A key whose line is full lies in a later one, which may be on the next page.
    @Test
    void aLineOnAPageThatIsNotInMemoryIsNotReadByAThreadThatMayNotWait() throws Exception {
        NavigableMap<byte[], byte[]> entries = new TreeMap<>(Arrays::compareUnsigned);
        for (int i = 0; i < MANY_KEYS; i++) {
            entries.put(key(i), value(1));
        }
        write(entries, ReadMode.MMAP, Compression.NONE);
        byte[] content = disk.content(FILE.getFileName().toString());
        SSTableFormat.Footer footer =
                SSTableFormat.readFooter(Records.nativeCopy(content) + content.length - SSTableFormat.FOOTER_BYTES);
        OnePage file = new OnePage(disk.open(FILE), footer.indexOffset());
        SSTable table = SSTable.open(disk, FILE, file, ReadMode.MMAP, allocator);
        for (byte[] key : entries.keySet()) { // which checks all blocks
            assertThat(get(table, key, false)).isEqualTo(value(1));
        }
        int onOtherPages = 0;
        long end = footer.hashIndexOffset() + footer.hashIndexBytes();
        for (long page = footer.hashIndexOffset() / Allocator.PAGE_BYTES; page * Allocator.PAGE_BYTES < end; page++) {
            file.page = page;
            long address = Records.nativeCopy(hashIndexOfOnePage(content, footer, page));
            HashIndex index = new HashIndex(address);
            for (byte[] key : entries.keySet()) {
                long hash = Keys.hash(key);
                long line = footer.hashIndexOffset() + index.lineAddress(hash) - address;
                if (line / Allocator.PAGE_BYTES == page && index.find(key, hash, (wanted, at) -> at) == 0) {
                    assertThat(get(table, key, false)).isSameAs(SSTable.NOT_CACHED);
                    onOtherPages++;
                }
            }
        }
        assertThat(onOtherPages).isPositive();
        table.release();
    }

    /// With the lines of one page of the file; the others are empty.
    private static byte[] hashIndexOfOnePage(byte[] content, SSTableFormat.Footer footer, long page) {
        int start = (int) footer.hashIndexOffset();
        byte[] index = Arrays.copyOfRange(content, start, start + (int) footer.hashIndexBytes());
        for (int at = HashIndex.HEADER_BYTES; at < index.length; at++) {
            if ((start + at) / Allocator.PAGE_BYTES != page) {
                index[at] = 0;
            }
        }
        return index;
    }

    @Test
    void entriesInOrderAreTheSameThroughBuffers() throws Exception {
        for (ReadMode read : ReadMode.values()) {
            for (Compression compression : Compression.values()) {
                SSTable table = table(read, compression);
                List<String> inPlace = Records.list(table.iterator(null));
                List<String> fromTheMiddle = Records.list(table.iterator(key(KEYS / 2)));
                table.expectMisses(true, true);
                assertThat(Records.list(table.iterator(null)))
                        .isEqualTo(inPlace)
                        .hasSize(KEYS);
                assertThat(Records.list(table.iterator(key(KEYS / 2)))).isEqualTo(fromTheMiddle);
                assertThat(Records.list(table.mergeIterator())).isEqualTo(inPlace);
                table.warm(() -> false);
                table.release();
            }
        }
    }
}
