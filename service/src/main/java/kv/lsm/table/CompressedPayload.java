package kv.lsm.table;

import kv.lsm.memory.Memory;

/// Tells where a compressed payload ends of which only the beginning is known: where its sequences have made as
/// many bytes as it says. What begins elsewhere soon contradicts itself, by a match of bytes before the first one.
///
/// ```
/// payload    plain length 4 │ sequences
/// sequence   bits: literals 4, match 4 │ more literals │ literals │ offset 2 │ more match
/// more       where the four bits are 15: bytes 255, and one below, to be added
/// ```
///
/// A match is four bytes longer than it says; the last sequence ends with its literals (LZ4's block format).
final class CompressedPayload {
    private static final int LENGTH_GOES_ON = 15;
    private static final int BYTE_GOES_ON = 255;
    private static final int MATCH_BYTES_MIN = 4;
    private static final int OFFSET_BYTES = 2;

    private final long start;
    private final long end;
    private final int plainLength;
    private long at;

    private CompressedPayload(long start, long bytesMax) {
        this.start = start;
        end = start + bytesMax;
        plainLength = BlockCompressor.plainLength(start, bytesMax);
        at = start + SSTableFormat.PLAIN_LENGTH_BYTES;
    }

    /// Bytes of the payload at address `start`, or -1 when none ends within `bytesMax`.
    static long bytes(long start, long bytesMax) {
        return new CompressedPayload(start, bytesMax).bytes();
    }

    private long bytes() {
        for (long plain = 0; at < end; ) {
            int token = Memory.getByte(at++) & 0xFF;
            long literals = length(token >>> 4);
            plain += literals;
            at += literals;
            if (plain >= plainLength) {
                return plain == plainLength && at <= end ? at - start : -1;
            }
            if (at + OFFSET_BYTES > end) {
                return -1;
            }
            int offset = Memory.getUnsignedShort(at);
            at += OFFSET_BYTES;
            if (offset == 0 || offset > plain) {
                return -1;
            }
            plain += MATCH_BYTES_MIN + length(token & LENGTH_GOES_ON);
        }
        return -1;
    }

    private long length(int fourBits) {
        long length = fourBits;
        for (int more = fourBits == LENGTH_GOES_ON ? BYTE_GOES_ON : 0; more == BYTE_GOES_ON && at < end; ) {
            more = Memory.getByte(at++) & 0xFF;
            length += more;
        }
        return length;
    }
}
