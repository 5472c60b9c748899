package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.disk.ForwardingDisk;
import kv.lsm.disk.ForwardingWriteFile;
import kv.lsm.disk.WriteFile;
import kv.lsm.memory.Allocator;
import kv.lsm.table.SSTableWriter;
import kv.lsm.table.TableOptions;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class EarlyWritingTest {
    private static final int KEYS = 200;

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aTableIsOnItsWayToTheDiskBeforeItsEndUnlessItsThreadIsBehind(boolean isBehind) throws Exception {
        AtomicInteger pieces = new AtomicInteger();
        AtomicInteger begun = new AtomicInteger();
        Allocator allocator = new Allocator();
        NavigableMap<byte[], byte[]> entries = new TreeMap<>(Arrays::compareUnsigned);
        for (int i = 0; i < KEYS; i++) {
            entries.put(Records.bytes("key %06d".formatted(i)), new byte[8_000]);
        }
        try (SSTableWriter writer = new SSTableWriter(
                        counting(pieces, begun),
                        Path.of("/faulty/1"),
                        new TableOptions(1024, 10, Compression.NONE, ReadMode.MMAP),
                        allocator,
                        new TimeSlices(() -> isBehind));
                Records records = new Records(entries)) {
            while (records.next()) {
                writer.add(records.keyAddress(), records.keyLength(), records.valueAddress(), records.valueLength());
            }
            writer.finish();
        }
        assertThat(pieces.get()).isGreaterThan(KEYS * 8_000 / (128 << 10));
        assertThat(begun.get()).isEqualTo(isBehind ? 0 : pieces.get());
    }

    private static ForwardingDisk counting(AtomicInteger pieces, AtomicInteger begun) {
        return new ForwardingDisk(new FaultyDisk()) {
            @Override
            public WriteFile create(Path path) throws IOException {
                return new ForwardingWriteFile(super.create(path)) {
                    @Override
                    public void write(ByteBuffer buffer) throws IOException {
                        pieces.incrementAndGet();
                        super.write(buffer);
                    }

                    @Override
                    public void beginWriting() {
                        begun.incrementAndGet();
                    }
                };
            }
        };
    }
}
