package kv.lsm.memory;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/// CRC-32C (Castagnoli), the checksum of every file of the store.
public final class Checksum {
    private static final int PART_BYTES = 8 << 10;

    private Checksum() {}

    public static int of(long address, long bytes) {
        return of(Memory.buffer(address, bytes));
    }

    /// As [#of(long, long)], of a mapped file whose pages the disk may fail to give. The checksum's machine code
    /// cannot be left by an error: reading there ends the process with SIGBUS. So only copies reach it, and what
    /// copies them throws InternalError.
    public static int ofMapped(long address, long bytes) {
        CRC32C crc = new CRC32C();
        byte[] part = new byte[(int) Math.min(bytes, PART_BYTES)];
        for (long at = 0; at < bytes; at += part.length) {
            int length = (int) Math.min(bytes - at, part.length);
            Memory.copy(address + at, part, 0, length);
            crc.update(part, 0, length);
        }
        return (int) crc.getValue();
    }

    /// Of the bytes between position and limit, which is left at the limit.
    public static int of(ByteBuffer buffer) {
        CRC32C crc = new CRC32C();
        crc.update(buffer);
        return (int) crc.getValue();
    }
}
