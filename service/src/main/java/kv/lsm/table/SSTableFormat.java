package kv.lsm.table;

import kv.lsm.memory.Checksum;
import kv.lsm.memory.Memory;

/// The bytes of an SSTable; `service/docs/sstable-format.md` is its specification.
///
/// ```
/// file    data blocks, index, filter, footer (64 bytes); each part starts at a multiple of 64
/// block   payload (plain, or compressed as its index entry tells) │ crc 4
/// footer  index offset 8 │ index bytes 8 │ filter offset 8 │ filter bytes 8 │ entries 8
///         │ index crc 4 │ filter crc 4 │ version 4 │ footer crc 4 │ magic 8
/// ```
///
/// Numbers are little-endian. The layout of a payload belongs to [DataBlock], of the index to [BlockIndex], of the filter to
/// [BloomFilter].
public final class SSTableFormat {
    /// "kvtable1" when read as text.
    public static final long MAGIC = 0x31656C626174766BL;
    public static final int VERSION = 1;
    public static final int FOOTER_BYTES = 64;
    /// Parts start at multiples of this: a cache line.
    public static final int ALIGNMENT_BYTES = 64;
    /// The checksum behind a block's payload.
    public static final int BLOCK_TRAILER_BYTES = 4;
    /// What a compressed block has before its LZ4 data: the bytes of the plain payload.
    public static final int PLAIN_LENGTH_BYTES = 4;

    private static final int INDEX_CRC_AT = 40;
    private static final int FILTER_CRC_AT = 44;
    private static final int VERSION_AT = 48;
    private static final int FOOTER_CRC_AT = 52;
    private static final int MAGIC_AT = 56;

    /// Where the parts of a table lie; offsets and sizes in bytes.
    public record Footer(
            long indexOffset, long indexBytes, long filterOffset, long filterBytes, long entries, int indexCrc, int filterCrc) {}

    private SSTableFormat() {}

    static void writeFooter(long address, Footer footer) {
        Memory.putLong(address, footer.indexOffset);
        Memory.putLong(address + 8, footer.indexBytes);
        Memory.putLong(address + 16, footer.filterOffset);
        Memory.putLong(address + 24, footer.filterBytes);
        Memory.putLong(address + 32, footer.entries);
        Memory.putInt(address + INDEX_CRC_AT, footer.indexCrc);
        Memory.putInt(address + FILTER_CRC_AT, footer.filterCrc);
        Memory.putInt(address + VERSION_AT, VERSION);
        Memory.putInt(address + FOOTER_CRC_AT, Checksum.of(address, FOOTER_CRC_AT));
        Memory.putLong(address + MAGIC_AT, MAGIC);
    }

    /// What is wrong with a footer, or null.
    static String footerProblem(long address) {
        if (Memory.getLong(address + MAGIC_AT) != MAGIC) {
            return "this is not a table: wrong magic number";
        }
        if (Memory.getInt(address + FOOTER_CRC_AT) != Checksum.of(address, FOOTER_CRC_AT)) {
            return "the footer does not match its checksum";
        }
        int version = Memory.getInt(address + VERSION_AT);
        return version == VERSION ? null : "unknown table version: version=" + version + ", known=" + VERSION;
    }

    static Footer readFooter(long address) {
        return new Footer(
                Memory.getLong(address),
                Memory.getLong(address + 8),
                Memory.getLong(address + 16),
                Memory.getLong(address + 24),
                Memory.getLong(address + 32),
                Memory.getInt(address + INDEX_CRC_AT),
                Memory.getInt(address + FILTER_CRC_AT));
    }
}
