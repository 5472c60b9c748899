package kv.lsm.memory;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/// CRC-32C (Castagnoli), the checksum of every file of the store.
public final class Checksum {
    private static final int PART_BYTES = 8 << 10;
    /// Bits stand for powers of x, the highest one for the lowest power, as in the checksum itself.
    private static final int POLYNOMIAL = 0x82F6_3B78;
    private static final int ONE = 1 << 31;
    /// x to the power of 2^i, modulo the polynomial.
    private static final int[] POWERS = powers();
    private static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(() -> new Scratch(PART_BYTES));

    /// What a thread copies into and computes with, again and again. Made anew, it left as much garbage as the block
    /// has bytes for each block that a GET or a merge was the first to meet.
    private static final class Scratch {
        final byte[] part;
        final CRC32C crc = new CRC32C();

        Scratch(int bytes) {
            part = new byte[bytes];
        }
    }

    private Checksum() {}

    public static int of(long address, long bytes) {
        return of(Memory.buffer(address, bytes));
    }

    /// As [#of(long, long)], of a mapped file whose pages the disk may fail to give. The checksum's machine code
    /// cannot be left by an error: reading there ends the process with SIGBUS. So only copies reach it, and what
    /// copies them throws InternalError.
    public static int ofMapped(long address, long bytes) {
        // a virtual thread ends before it could use it again
        Scratch scratch =
                Thread.currentThread().isVirtual() ? new Scratch((int) Math.min(bytes, PART_BYTES)) : SCRATCH.get();
        byte[] part = scratch.part;
        CRC32C crc = scratch.crc;
        crc.reset();
        for (long at = 0; at < bytes; at += part.length) {
            int length = (int) Math.min(bytes - at, part.length);
            Memory.copy(address + at, part, 0, length);
            crc.update(part, 0, length);
        }
        Mapped.throwPending(); // what was copied may be what lay there before
        return (int) crc.getValue();
    }

    /// What the checksum of some bytes adds to that of them and `bytes` more: `shifted(a, n) ^ b` is the checksum of
    /// what has the checksum a, followed by n bytes that have the checksum b.
    public static int shifted(int checksum, long bytes) {
        int shifted = checksum;
        long bits = bytes * Byte.SIZE;
        for (int i = 0; bits >>> i != 0; i++) {
            if ((bits >>> i & 1) != 0) {
                shifted = product(POWERS[i], shifted);
            }
        }
        return shifted;
    }

    private static int[] powers() {
        int[] powers = new int[Long.SIZE];
        powers[0] = ONE >>> 1;
        for (int i = 1; i < powers.length; i++) {
            powers[i] = product(powers[i - 1], powers[i - 1]);
        }
        return powers;
    }

    private static int product(int a, int b) {
        int product = 0;
        int power = b;
        for (int rest = a; rest != 0; rest <<= 1) {
            product ^= (rest & ONE) != 0 ? power : 0;
            power = (power & 1) != 0 ? power >>> 1 ^ POLYNOMIAL : power >>> 1;
        }
        return product;
    }

    /// Of the bytes between position and limit, which is left at the limit.
    public static int of(ByteBuffer buffer) {
        CRC32C crc = new CRC32C();
        crc.update(buffer);
        return (int) crc.getValue();
    }
}
