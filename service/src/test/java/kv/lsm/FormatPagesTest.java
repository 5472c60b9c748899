package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.log.UnloggedFile;
import kv.lsm.log.WriteAheadLogFormat;
import kv.lsm.log.WriteAheadLogReader;
import kv.lsm.log.WriteAheadLogWriter;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;
import kv.lsm.table.BlockBuffers;
import kv.lsm.table.SSTable;
import kv.lsm.table.SSTableFormat;
import kv.lsm.table.SSTableWriter;
import kv.lsm.table.TableOptions;
import org.junit.jupiter.api.Test;

/// The pages under `service/docs` show the bytes that the code writes, and the code reads the bytes that they
/// show.
class FormatPagesTest {
    private static final Path DIRECTORY = Path.of("/faulty");

    private final Allocator allocator = new Allocator();
    private final FaultyDisk disk = new FaultyDisk();

    private static void assertShown(byte[] shown, byte[] written) {
        assertThat(HexDump.format(shown)).isEqualTo(HexDump.format(written));
    }

    private static void assertNames(String page, Object... constants) throws IOException {
        String text = String.join("\n", HexDump.page(page));
        for (Object constant : constants) {
            assertThat(text)
                    .contains(constant instanceof Long magic ? "0x%016X".formatted(magic) : constant.toString());
        }
    }

    @Test
    void theWriteAheadLogPageAgreesWithTheCode() throws Exception {
        assertNames(
                "write-ahead-log-format.md",
                WriteAheadLogFormat.MAGIC,
                WriteAheadLogFormat.HEADER_BYTES + " bytes",
                "| 8 | 4 | version | " + WriteAheadLogFormat.VERSION + " |",
                "a multiple of " + WriteAheadLogFormat.RECORD_ALIGNMENT_BYTES,
                "| " + WriteAheadLogFormat.RECORD_HEADER_BYTES + " | … | key, value |",
                WriteAheadLogFormat.SECTOR_BYTES + "-byte sector",
                "1 to " + StoreOptions.KEY_BYTES_MAX);
        byte[] shown = HexDump.parse(HexDump.page("write-ahead-log-format.md"));
        UnloggedFile file = new UnloggedFile(allocator, 4096);
        WriteAheadLogWriter writer = new WriteAheadLogWriter(file, new WriteAheadLogFormat.Header(7, 5, 4096), true);
        writer.append(Records.bytes("key"), Records.bytes("value"));
        writer.sync();
        writer.append(Records.bytes("key"), null);
        assertShown(shown, Memory.copyOf(file.address(), (int) writer.end()));

        WriteAheadLogReader reader =
                new WriteAheadLogReader(Path.of("page"), 7, Records.nativeCopy(shown), shown.length);
        List<String> read = new ArrayList<>();
        WriteAheadLogReader.Result result = reader.read(
                0,
                record -> read.add(new String(Memory.copyOf(
                                WriteAheadLogFormat.keyAddress(record), WriteAheadLogFormat.keyLength(record)))
                        + " " + WriteAheadLogFormat.valueLength(record)));
        assertThat(reader.header()).isEqualTo(new WriteAheadLogFormat.Header(7, 5, 4096));
        assertThat(read).containsExactly("key 5", "key -1");
        assertThat(result.synced()).isTrue();
    }

    @Test
    void theTablePageAgreesWithTheCode() throws Exception {
        assertNames(
                "sstable-format.md",
                SSTableFormat.MAGIC,
                "a multiple of " + SSTableFormat.ALIGNMENT_BYTES,
                "version: " + SSTableFormat.VERSION,
                "footer (" + SSTableFormat.FOOTER_BYTES + " bytes)",
                "| 80 | 8 | magic");
        byte[] shown = HexDump.parse(HexDump.page("sstable-format.md"));
        TableOptions options = new TableOptions(4096, 10, Compression.NONE, ReadMode.MMAP);
        NavigableMap<byte[], byte[]> entries = new TreeMap<>(Arrays::compareUnsigned);
        entries.put(Records.bytes("apple"), Records.bytes("red"));
        entries.put(Records.bytes("banana"), null);
        try (SSTableWriter writer =
                        new SSTableWriter(disk, DIRECTORY.resolve("1"), options, allocator, TimeSlices.endless());
                Records records = new Records(entries)) {
            while (records.next()) {
                writer.add(records.keyAddress(), records.keyLength(), records.valueAddress(), records.valueLength());
            }
            writer.finish();
        }
        assertShown(shown, disk.content("1"));

        disk.setContent("page", shown);
        for (ReadMode read : ReadMode.values()) {
            SSTable table = SSTable.open(disk, DIRECTORY.resolve("page"), read, allocator);
            assertThat(Records.list(table.iterator(null))).containsExactly("apple=red", "banana=†");
            try (BlockBuffers buffers = new BlockBuffers(allocator)) {
                byte[] apple = Records.bytes("apple");
                assertThat(table.get(apple, Keys.hash(apple), buffers)).isEqualTo(Records.bytes("red"));
                byte[] banana = Records.bytes("banana");
                assertThat(table.get(banana, Keys.hash(banana), buffers)).isSameAs(SSTable.DELETED);
                byte[] cherry = Records.bytes("cherry");
                assertThat(table.get(cherry, Keys.hash(cherry), buffers)).isNull();
            }
            table.release();
        }
    }

    @Test
    void theManifestPageAgreesWithTheCode() throws Exception {
        assertNames("manifest-format.md", ManifestFormat.MAGIC, "| 4 | version | " + ManifestFormat.VERSION + " |");
        byte[] shown = HexDump.parse(HexDump.page("manifest-format.md"));
        VersionEdit first = new VersionEdit(1, true, 2, List.of(), List.of());
        VersionEdit second = new VersionEdit(
                2,
                true,
                4,
                List.of(),
                List.of(new TableMetadata(3, 0, 4, 320, 2, 0, Records.bytes("a"), Records.bytes("b"))));
        ByteBuffer written = ByteBuffer.allocate(1 << 10)
                .put(ManifestFormat.header())
                .put(ManifestFormat.record(first))
                .put(ManifestFormat.record(second));
        assertShown(shown, Arrays.copyOf(written.array(), written.position()));

        disk.setContent("MANIFEST", shown);
        Manifest.Content content = Manifest.read(disk, DIRECTORY, allocator);
        assertThat(content.edits()).hasSize(2);
        assertThat(content.edits().getFirst()).isEqualTo(first);
        TableMetadata table = content.edits().getLast().added().getFirst();
        assertThat(table).usingRecursiveComparison().isEqualTo(second.added().getFirst());
        assertThat(content.droppedBytes()).isZero();
    }
}
