package kv.lsm.table;

import java.io.IOException;
import java.util.zip.CRC32C;
import kv.lsm.disk.ReadFile;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Checksum;
import kv.lsm.memory.Memory;

/// Finds the data blocks of a table whose index is lost.
///
/// At each multiple of 64 bytes it looks for a payload that fits itself and is followed by its checksum. A
/// plain payload tells its length; a compressed one tells the length of what it holds, so that every end up to
/// [#COMPRESSED_BYTES_MAX] has to be tried.
final class BlockScan implements AutoCloseable {
    /// Larger compressed blocks hold one large value and are not found.
    private static final int COMPRESSED_BYTES_MAX = 256 << 10;
    private static final int ENTRIES_MAX = 1 << 16;

    private final long mapped;
    private final long dataEnd;
    private final boolean endKnown;
    private final BlockBuffer buffer;
    private long next;
    private long start;
    private long gapBytes;
    private long payload;

    /// @param file all of which can be read, see [kv.lsm.disk.FileCopy]
    BlockScan(ReadFile file, Allocator allocator) throws IOException {
        mapped = file.map();
        long footer = file.bytes() - SSTableFormat.FOOTER_BYTES;
        endKnown = footer >= 0 && SSTableFormat.footerProblem(mapped + footer) == null;
        dataEnd = endKnown
                ? Math.min(SSTableFormat.readFooter(mapped + footer).indexOffset(), file.bytes())
                : file.bytes();
        buffer = new BlockBuffer(allocator);
    }

    /// Moves to the next readable block; false when there is none.
    boolean next() {
        long gapStart = next;
        for (long at = next; at < dataEnd; at += SSTableFormat.ALIGNMENT_BYTES) {
            long payloadBytes = plainAt(at);
            payload = mapped + at;
            if (payloadBytes < 0) {
                payloadBytes = compressedAt(at);
            }
            if (payloadBytes > 0) {
                start = at;
                gapBytes = at - gapStart;
                next = at + payloadBytes + SSTableFormat.BLOCK_TRAILER_BYTES + SSTableFormat.ALIGNMENT_BYTES - 1
                        & -SSTableFormat.ALIGNMENT_BYTES;
                return true;
            }
        }
        return false;
    }

    long start() {
        return start;
    }

    /// Bytes before the block that belong to no readable one.
    long gapBytes() {
        return gapBytes;
    }

    /// Plain; valid until [#next].
    long payload() {
        return payload;
    }

    /// Behind the last block.
    long end() {
        return next;
    }

    boolean mayHaveLostItsEnd() {
        return !endKnown || next < dataEnd;
    }

    /// Bytes of the plain payload, or -1.
    private long plainAt(long at) {
        long left = dataEnd - at - SSTableFormat.BLOCK_TRAILER_BYTES;
        if (left < DataBlock.COUNT_BYTES) {
            return -1;
        }
        long block = mapped + at;
        int count = DataBlock.count(block);
        long entriesAt = DataBlock.COUNT_BYTES + (long) count * DataBlock.OFFSET_BYTES;
        if (count == 0 || entriesAt > left) {
            return -1;
        }
        long last = DataBlock.entry(block, count, count - 1);
        if (last + DataBlock.ENTRY_HEADER_BYTES > block + left) {
            return -1;
        }
        long bytes = DataBlock.entryEnd(last) - block;
        return bytes > entriesAt
                        && bytes <= left
                        && checksumFits(block, bytes)
                        && DataBlock.problem(block, bytes) == null
                ? bytes
                : -1;
    }

    private static boolean checksumFits(long block, long bytes) {
        return Memory.getInt(block + bytes) == Checksum.of(block, bytes);
    }

    /// As [#plainAt]; leaves the plain payload in the buffer.
    private long compressedAt(long at) {
        long left = Math.min(dataEnd - at - SSTableFormat.BLOCK_TRAILER_BYTES, COMPRESSED_BYTES_MAX);
        long block = mapped + at;
        int plainLength = left < SSTableFormat.PLAIN_LENGTH_BYTES ? -1 : BlockCompressor.plainLength(block, left);
        if (plainLength < DataBlock.COUNT_BYTES + DataBlock.ENTRY_HEADER_BYTES || plainLength > ENTRIES_MAX * 256) {
            return -1;
        }
        CRC32C crc = new CRC32C();
        for (long bytes = 0; bytes < Math.min(left, plainLength + (long) SSTableFormat.PLAIN_LENGTH_BYTES); ) {
            crc.update(Memory.getByte(block + bytes++));
            if (Memory.getInt(block + bytes) == (int) crc.getValue() && bytes > SSTableFormat.PLAIN_LENGTH_BYTES) {
                long plain = buffer.plainRoom(plainLength);
                if (BlockCompressor.decompress(block, bytes, plain, plainLength)
                        && DataBlock.problem(plain, plainLength) == null) {
                    payload = plain;
                    return bytes;
                }
            }
        }
        return -1;
    }

    @Override
    public void close() {
        buffer.close();
    }
}
