package kv.lsm.log;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import kv.lsm.CorruptionException;
import kv.lsm.HexDump;
import kv.lsm.Records;
import kv.lsm.WriteBatch;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;
import org.junit.jupiter.api.Test;

class WriteAheadLogReaderTest {
    private static final int LOG_BYTES = 16 << 10;
    private static final Path FILE = Path.of("000001.log");

    private final UnloggedFile memory = new UnloggedFile(new Allocator(), LOG_BYTES);
    private final WriteAheadLogWriter writer =
            new WriteAheadLogWriter(memory, new WriteAheadLogFormat.Header(1, 0, 0), true);

    /// Appends records `0=…`, `1=…` whose values have no zero byte; returns their offsets.
    private List<Long> append(int count, int valueBytes) {
        List<Long> offsets = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            offsets.add(writer.end());
            writer.append(Records.bytes(Integer.toString(i)), Records.bytes("v".repeat(valueBytes)));
        }
        return offsets;
    }

    private WriteAheadLogReader.Result read(List<String> keys) {
        return read(keys, 0);
    }

    private WriteAheadLogReader.Result read(List<String> keys, long knownEnd) {
        return new WriteAheadLogReader(FILE, 1, memory.address(), LOG_BYTES)
                .read(
                        knownEnd,
                        record -> keys.add(new String(Memory.copyOf(
                                WriteAheadLogFormat.keyAddress(record), WriteAheadLogFormat.keyLength(record)))));
    }

    private void zero(long from, long to) {
        Memory.fill(memory.address() + from, to - from, (byte) 0);
    }

    private void flip(long offset) {
        Memory.putByte(memory.address() + offset, (byte) (Memory.getByte(memory.address() + offset) ^ 1));
    }

    private void expectCorruption(long offset) {
        assertThatThrownBy(() -> read(new ArrayList<>())).isInstanceOfSatisfying(CorruptionException.class, e -> {
            assertThat(e.file()).isEqualTo(FILE);
            assertThat(e.byteOffset()).isEqualTo(offset);
        });
    }

    @Test
    void recordsComeBackInOrder() {
        append(20, 100);
        List<String> keys = new ArrayList<>();
        WriteAheadLogReader.Result result = read(keys);
        assertThat(keys).hasSize(20).startsWith("0", "1", "2");
        assertThat(result.end()).isEqualTo(writer.end());
        assertThat(result.droppedBytes()).isZero();
    }

    @Test
    void anEmptyFileWasNeverStarted() {
        zero(0, LOG_BYTES);
        WriteAheadLogReader.Result result = read(new ArrayList<>());
        assertThat(result.headerOrNull()).isNull();
        assertThat(result.droppedBytes()).isZero();
    }

    @Test
    void aTornLastRecordIsDroppedAndReported() {
        List<Long> offsets = append(5, 100);
        zero(offsets.get(4) + 50, writer.end());
        List<String> keys = new ArrayList<>();
        WriteAheadLogReader.Result result = read(keys);
        assertThat(keys).containsExactly("0", "1", "2", "3");
        assertThat(result.end()).isEqualTo(offsets.get(4));
        assertThat(result.droppedBytes()).isBetween(43L, 56L);
    }

    @Test
    void aFlippedBitInTheLastRecordIsATornTailUnlessItWasDurable() throws Exception {
        List<Long> offsets = append(5, 100);
        flip(offsets.get(4) + 30);
        assertThat(read(new ArrayList<>()).droppedBytes()).isPositive();
        flip(offsets.get(4) + 30);
        writer.sync();
        writer.appendClosed();
        assertThat(read(new ArrayList<>()).synced()).isTrue();
        flip(offsets.get(4) + 30);
        expectCorruption(offsets.get(4));
    }

    @Test
    void whatAValueHoldsBehindABreakIsNoRecord() throws Exception {
        UnloggedFile elsewhere = new UnloggedFile(new Allocator(), LOG_BYTES);
        WriteAheadLogWriter other = new WriteAheadLogWriter(elsewhere, new WriteAheadLogFormat.Header(2, 0, 0), true);
        other.append(Records.bytes("k"), Records.bytes("v".repeat(9_000)));
        other.sync();
        long from = other.end();
        other.append(Records.bytes("inner"), Records.bytes("w".repeat(50)));
        byte[] record = Memory.copyOf(elsewhere.address() + from, (int) (other.end() - from));

        long broken = writer.end();
        writer.append(Records.bytes("0"), Records.bytes("v".repeat(2_000)));
        zero(broken + 100, writer.end());
        writer.append(Records.bytes("ab"), record); // behind a key of two bytes it lies where a record may begin
        List<String> keys = new ArrayList<>();
        WriteAheadLogReader.Result result = read(keys);
        assertThat(keys).isEmpty();
        assertThat(result.end()).isEqualTo(broken);
        assertThat(result.droppedBytes()).isPositive();
    }

    /// As when somebody stores the bytes of a log.
    @Test
    void aRecordInTheValueOfATornOneIsNone() throws Exception {
        for (long number : new long[] {1, 2}) {
            UnloggedFile elsewhere = new UnloggedFile(new Allocator(), LOG_BYTES);
            WriteAheadLogWriter other =
                    new WriteAheadLogWriter(elsewhere, new WriteAheadLogFormat.Header(number, 0, 0), true);
            other.append(Records.bytes("first"), Records.bytes("w".repeat(1_000)));
            other.sync();
            for (int i = 0; i < 12; i++) {
                other.append(Records.bytes("evil"), Records.bytes("injected".repeat(20)));
            }
            byte[] content = Memory.copyOf(elsewhere.address(), (int) other.end());

            zero(0, LOG_BYTES);
            WriteAheadLogWriter own = new WriteAheadLogWriter(memory, new WriteAheadLogFormat.Header(1, 0, 0), true);
            own.append(Records.bytes("0"), Records.bytes("v".repeat(200)));
            long torn = own.end();
            own.append(Records.bytes("ab"), content); // behind two bytes a record of the value may begin
            byte[] whole = content();
            for (long sector = 512; sector < own.end(); sector += 512) {
                zero(sector, sector + 512);
                List<String> keys = new ArrayList<>();
                assertThat(read(keys).end()).as("sector at %d is lost", sector).isEqualTo(torn);
                assertThat(keys).containsExactly("0");
                assertThat(LogInspection.read(1, memory.address(), LOG_BYTES, record -> {})
                                .records())
                        .isEqualTo(1);
                Memory.copy(whole, memory.address());
            }
        }
    }

    /// Numbers of four bytes, a large and a small one by turns: each other one looks like the length of a record that
    /// reaches far. To take the checksum of each would take minutes.
    @Test
    void behindATornRecordOfManyLengthsAValidOneIsFound() {
        int logBytes = 16 << 20;
        UnloggedFile large = new UnloggedFile(new Allocator(), logBytes);
        WriteAheadLogWriter own = new WriteAheadLogWriter(large, new WriteAheadLogFormat.Header(1, 0, 0), true);
        own.append(Records.bytes("0"), Records.bytes("v"));
        long torn = own.end();
        ByteBuffer lengths = ByteBuffer.allocate(256 << 10).order(ByteOrder.LITTLE_ENDIAN);
        while (lengths.hasRemaining()) {
            lengths.putInt(14_000_000).putInt(1);
        }
        own.append(Records.bytes("ab"), lengths.array()); // behind two bytes a record of the value may begin
        long later = own.end();
        own.append(Records.bytes("later"), Records.bytes("w".repeat(100_000)));
        Memory.putByte(large.address() + torn + 100, (byte) 9);
        WriteAheadLogReader reader = new WriteAheadLogReader(FILE, 1, large.address(), logBytes);
        assertThatThrownBy(() -> reader.read(0, record -> {}))
                .isInstanceOfSatisfying(
                        CorruptionException.class,
                        e -> assertThat(e.byteOffset()).isEqualTo(torn));
        LogInspection.Result found = LogInspection.read(1, large.address(), logBytes, record -> {});
        assertThat(found.records()).isEqualTo(2);
        assertThat(found.lostAt()).isEqualTo(torn);
        Memory.fill(large.address() + later, 1024, (byte) 0);
        assertThat(reader.read(0, record -> {}).end()).isEqualTo(torn);
    }

    /// The example of the format's page before version 3.
    private static final String VERSION_2 = """
            000  6b 76 77 61 6c 6f 67 31 02 00 00 00 36 fb 54 4b
            010  07 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00
            020  00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            030  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            040  5b 7a ed f4 00 00 00 00 05 00 00 00 03 00 6b 65
            050  79 76 61 6c 75 65 00 00 2d a9 b9 42 0b 00 00 00
            060  ff ff ff ff 03 00 6b 65 79 00 00 00 00 00 00 00
            """;

    @Test
    void logsOfEarlierVersionsAreReadAndAnyChangedByteOfTheirHeaderIsFound() {
        byte[] shown = HexDump.parse(VERSION_2.lines().toList());
        for (byte version : new byte[] {1, 2}) {
            zero(0, LOG_BYTES);
            Memory.copy(shown, memory.address());
            Memory.putByte(memory.address() + 8, version);
            List<String> keys = new ArrayList<>();
            assertThat(read(keys).headerOrNull()).isEqualTo(new WriteAheadLogFormat.Header(7, 5, 4096));
            assertThat(keys).containsExactly("key", "key");
            for (int at = 0; at < WriteAheadLogFormat.HEADER_BYTES; at++) {
                if (at != 8) { // versions 1 and 2 differ in no more
                    flip(at);
                    assertThatThrownBy(() -> read(new ArrayList<>())).isInstanceOf(CorruptionException.class);
                    flip(at);
                }
            }
        }
    }

    @Test
    void aFlippedBitBeforeValidRecordsIsDamage() {
        for (int valueBytes : new int[] {1, 100, 3_000}) {
            zero(0, LOG_BYTES);
            WriteAheadLogWriter own = new WriteAheadLogWriter(memory, new WriteAheadLogFormat.Header(1, 0, 0), true);
            List<Long> offsets = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                offsets.add(own.end());
                own.append(Records.bytes("key"), Records.bytes("v".repeat(valueBytes)));
            }
            for (long at = offsets.get(1); at < offsets.get(1) + 17 + valueBytes; at++) {
                flip(at);
                expectCorruption(offsets.get(1));
                flip(at);
            }
        }
    }

    private byte[] content() {
        return Memory.copyOf(memory.address(), LOG_BYTES);
    }

    /// The disk takes a page from its first byte to its last, and meanwhile records are appended to it.
    @Test
    void aPageThatWasWrittenToTheDiskWhileRecordsWereAppendedHasATornTail() throws Exception {
        append(3, 100);
        writer.sync();
        long before = writer.end();
        List<byte[]> moments = new ArrayList<>(List.of(content()));
        for (int valueBytes : new int[] {1, 40, 700, 2, 3}) {
            long start = writer.end();
            writer.append(Records.bytes("later"), Records.bytes("v".repeat(valueBytes)));
            byte[] unfinished = content();
            Arrays.fill(unfinished, (int) start, (int) start + Integer.BYTES, (byte) 0); // the checksum comes last
            moments.add(unfinished);
            moments.add(content());
        }
        assertThat(writer.end()).isLessThan(Allocator.PAGE_BYTES);
        int records = 0;
        for (int early = 0; early < moments.size(); early++) {
            for (byte[] late : moments.subList(early, moments.size())) {
                for (int taken = (int) before; taken <= writer.end(); taken += 8) {
                    byte[] onDisk = late.clone();
                    System.arraycopy(moments.get(early), 0, onDisk, 0, taken);
                    Memory.copy(onDisk, memory.address());
                    List<String> keys = new ArrayList<>();
                    assertThat(read(keys).end())
                            .as("as at moment %d up to byte %d", early, taken)
                            .isBetween(before, writer.end());
                    assertThat(keys).startsWith("0", "1", "2");
                    records = Math.max(records, keys.size());
                }
            }
        }
        assertThat(records).isEqualTo(8);
    }

    @Test
    void aLostSectorThatWasNotSyncedEndsTheLog() {
        append(40, 100);
        zero(2 * 512, 3 * 512);
        List<String> keys = new ArrayList<>();
        WriteAheadLogReader.Result result = read(keys);
        assertThat(keys).hasSizeBetween(6, 8);
        assertThat(result.droppedBytes()).isEqualTo(writer.end() - result.end());
    }

    @Test
    void aLostSectorThatWasSyncedIsDamage() throws Exception {
        append(10, 100);
        writer.sync();
        append(30, 100);
        zero(2 * 512, 3 * 512);
        assertThatThrownBy(() -> read(new ArrayList<>())).isInstanceOf(CorruptionException.class);
    }

    @Test
    void aLogThatEndsBeforeTheNextOneSaysLostItsTail() {
        append(40, 100);
        zero(5 * 512, LOG_BYTES);
        List<String> keys = new ArrayList<>();
        WriteAheadLogReader.Result result = read(keys, writer.end());
        assertThat(result.end()).isLessThan(writer.end());
        assertThat(keys).isNotEmpty();
    }

    @Test
    void aLostHeaderOfALogThatWasSyncedIsDamage() throws Exception {
        append(3, 100);
        writer.sync();
        append(10, 100);
        zero(0, 512);
        expectCorruption(0);
    }

    /// Writes of a batch whose writer gets no further than to write `stop`, as when the process is killed
    /// there.
    private static List<WriteBatch.Write> stoppingAt(int stop, int writes) {
        int[] passes = {0};
        return new AbstractList<>() {
            @Override
            public WriteBatch.Write get(int i) {
                passes[0] += i == 0 ? 1 : 0;
                if (passes[0] == 2 && i == stop) { // the first pass only adds up the bytes
                    throw new IllegalStateException("killed");
                }
                return new WriteBatch.Write(Records.bytes("batch-" + i), Records.bytes("v".repeat(40)));
            }

            @Override
            public int size() {
                return writes;
            }
        };
    }

    @Test
    void aBatchWhoseWriterWasKilledAtAnyOfItsRecordsIsATornTail() {
        append(3, 100);
        long end = writer.end();
        for (int stop = 0; stop < 60; stop++) {
            zero(end, LOG_BYTES);
            List<WriteBatch.Write> writes = stoppingAt(stop, 60);
            assertThatThrownBy(() -> writer.append(writes)).hasMessage("killed");
            List<String> keys = new ArrayList<>();
            WriteAheadLogReader.Result result = read(keys);
            assertThat(keys).as("stopped at record %d", stop).containsExactly("0", "1", "2");
            assertThat(result.end()).isEqualTo(end);
        }
    }
}
