package kv.lsm.table;

import java.io.IOException;
import kv.lsm.disk.ReadFile;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Checksum;
import kv.lsm.memory.Memory;
import kv.lsm.memory.PartChecksums;

/// Finds the data blocks of a table whose index is lost.
///
/// At each multiple of 64 bytes it looks for a payload that tells where it ends and is followed by its checksum
/// there. A plain payload ends with its last entry, a compressed one where what it holds is complete.
final class BlockScan implements AutoCloseable {
    /// Of what may be a longer payload, [PartChecksums] tells the checksum: at most places there is none.
    private static final int SHORT_BYTES = 16 << 10;

    private final long mapped;
    private final long dataEnd;
    private final boolean endKnown;
    private final BlockBuffer buffer;
    private final PartChecksums parts;
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
        parts = new PartChecksums(mapped, file.bytes());
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
        return bytes > entriesAt && bytes <= left && checksumFits(at, bytes) && DataBlock.problem(block, bytes) == null
                ? bytes
                : -1;
    }

    private boolean checksumFits(long at, long bytes) {
        int checksum = bytes <= SHORT_BYTES ? Checksum.of(mapped + at, bytes) : parts.of(at, at + bytes);
        return Memory.getInt(mapped + at + bytes) == checksum;
    }

    /// As [#plainAt]; leaves the plain payload in the buffer.
    private long compressedAt(long at) {
        long block = mapped + at;
        long bytes = CompressedPayload.bytes(block, dataEnd - at - SSTableFormat.BLOCK_TRAILER_BYTES);
        if (bytes < 0 || !checksumFits(at, bytes)) {
            return -1;
        }
        int plainLength = BlockCompressor.plainLength(block, bytes);
        payload = buffer.plainRoom(plainLength);
        return BlockCompressor.decompress(block, bytes, payload, plainLength)
                        && DataBlock.problem(payload, plainLength) == null
                ? bytes
                : -1;
    }

    @Override
    public void close() {
        buffer.close();
    }
}
