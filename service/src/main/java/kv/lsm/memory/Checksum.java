package kv.lsm.memory;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/// CRC-32C (Castagnoli), the checksum of every file of the store.
public final class Checksum {
    private Checksum() {}

    public static int of(long address, long bytes) {
        return of(Memory.buffer(address, bytes));
    }

    /// Of the bytes between position and limit, which is left at the limit.
    public static int of(ByteBuffer buffer) {
        CRC32C crc = new CRC32C();
        crc.update(buffer);
        return (int) crc.getValue();
    }
}
