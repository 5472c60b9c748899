package kv.lsm.table;

import kv.lsm.memory.Memory;
import kv.lsm.memory.NativeBuffer;
import net.jpountz.lz4.LZ4Compressor;
import net.jpountz.lz4.LZ4Exception;
import net.jpountz.lz4.LZ4Factory;
import net.jpountz.lz4.LZ4SafeDecompressor;

/// LZ4 of a block's payload, in native memory.
final class BlockCompressor {
    private static final LZ4Compressor COMPRESSOR = LZ4Factory.fastestInstance().fastCompressor();
    private static final LZ4SafeDecompressor DECOMPRESSOR =
            LZ4Factory.fastestInstance().safeDecompressor();

    private BlockCompressor() {}

    /// Replaces the last `bytes` bytes of `out` by their compressed form if that is smaller by an eighth at
    /// least; otherwise it is not worth the time of every later read.
    ///
    /// @param scratch cleared and used
    /// @return true when replaced
    static boolean compress(NativeBuffer out, long bytes, NativeBuffer scratch) {
        scratch.clear();
        int most = COMPRESSOR.maxCompressedLength((int) bytes);
        long target = scratch.extend(most);
        long source = out.address() + out.size() - bytes;
        int compressed =
                COMPRESSOR.compress(Memory.buffer(source, bytes), 0, (int) bytes, Memory.buffer(target, most), 0, most);
        if (SSTableFormat.PLAIN_LENGTH_BYTES + compressed > bytes - bytes / 8) {
            return false;
        }
        out.truncate(out.size() - bytes);
        out.appendInt((int) bytes);
        out.append(target, compressed);
        return true;
    }

    /// The length that [#decompress] will need, or -1 when it cannot be right.
    static int plainLength(long payload, long payloadBytes) {
        return payloadBytes < SSTableFormat.PLAIN_LENGTH_BYTES ? -1 : Memory.getInt(payload);
    }

    /// True when the payload became exactly `plainLength` bytes at `target`.
    static boolean decompress(long payload, long payloadBytes, long target, int plainLength) {
        int compressed = (int) payloadBytes - SSTableFormat.PLAIN_LENGTH_BYTES;
        try {
            return DECOMPRESSOR.decompress(
                            Memory.buffer(payload + SSTableFormat.PLAIN_LENGTH_BYTES, compressed),
                            0,
                            compressed,
                            Memory.buffer(target, plainLength),
                            0,
                            plainLength)
                    == plainLength;
        } catch (LZ4Exception e) {
            return false;
        }
    }
}
