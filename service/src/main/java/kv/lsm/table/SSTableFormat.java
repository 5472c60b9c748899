package kv.lsm.table;

import kv.lsm.memory.Checksum;
import kv.lsm.memory.Memory;

/// The bytes of an SSTable; `service/docs/sstable-format.md` is its specification.
///
/// ```
/// file    data blocks, index, filter, hash index, footer (88 bytes); each part starts at a multiple of 64
/// block   payload (plain, or compressed as its index entry tells) │ crc 4
/// footer  index offset 8 │ index bytes 8 │ filter offset 8 │ filter bytes 8 │ hash index offset 8 │
///         hash index bytes 8 │ entries 8
///         │ index crc 4 │ filter crc 4 │ hash index crc 4 │ zeros 4 │ version 4 │ footer crc 4 │ magic 8
/// ```
///
/// Numbers are little-endian. The layout of a payload belongs to [DataBlock], of the index to [BlockIndex], of
/// the filter to [BloomFilter], of the hash index to [HashIndex].
public final class SSTableFormat {
    /// "kvtable1" when read as text.
    public static final long MAGIC = 0x31656C626174766BL;
    public static final int VERSION = 3;
    /// Differs in the keys' hash only ([HashOfVersion2]). Read, and rewritten by compaction.
    static final int VERSION_WITH_OLD_HASH = 2;
    public static final int FOOTER_BYTES = 88;
    /// Parts start at multiples of this: a cache line.
    public static final int ALIGNMENT_BYTES = 64;
    /// The checksum behind a block's payload.
    public static final int BLOCK_TRAILER_BYTES = 4;
    /// What a compressed block has before its LZ4 data: the bytes of the plain payload.
    public static final int PLAIN_LENGTH_BYTES = 4;

    private static final int INDEX_CRC_AT = 56;
    private static final int FILTER_CRC_AT = 60;
    private static final int HASH_INDEX_CRC_AT = 64;
    /// As far from the end as in version 1, whose footer is shorter.
    private static final int VERSION_AT = 72;
    private static final int FOOTER_CRC_AT = 76;
    private static final int MAGIC_AT = 80;

    /// Where the parts of a table lie; offsets and sizes in bytes.
    public record Footer(
            long indexOffset,
            long indexBytes,
            long filterOffset,
            long filterBytes,
            long hashIndexOffset,
            long hashIndexBytes,
            long entries,
            int indexCrc,
            int filterCrc,
            int hashIndexCrc,
            int version) {}

    private SSTableFormat() {}

    static void writeFooter(long address, Footer footer) {
        Memory.putLong(address, footer.indexOffset);
        Memory.putLong(address + 8, footer.indexBytes);
        Memory.putLong(address + 16, footer.filterOffset);
        Memory.putLong(address + 24, footer.filterBytes);
        Memory.putLong(address + 32, footer.hashIndexOffset);
        Memory.putLong(address + 40, footer.hashIndexBytes);
        Memory.putLong(address + 48, footer.entries);
        Memory.putInt(address + INDEX_CRC_AT, footer.indexCrc);
        Memory.putInt(address + FILTER_CRC_AT, footer.filterCrc);
        Memory.putInt(address + HASH_INDEX_CRC_AT, footer.hashIndexCrc);
        Memory.putInt(address + HASH_INDEX_CRC_AT + 4, 0);
        Memory.putInt(address + VERSION_AT, footer.version);
        Memory.putInt(address + FOOTER_CRC_AT, Checksum.of(address, FOOTER_CRC_AT));
        Memory.putLong(address + MAGIC_AT, MAGIC);
    }

    /// What is wrong with a footer, or null.
    static String footerProblem(long address) {
        if (Memory.getLong(address + MAGIC_AT) != MAGIC) {
            return "this is not a table: wrong magic number";
        }
        int version = Memory.getInt(address + VERSION_AT);
        if (version != VERSION && version != VERSION_WITH_OLD_HASH) {
            return "unknown table version, open it with the release that wrote it: version=" + version + ", known="
                    + VERSION_WITH_OLD_HASH + " and " + VERSION;
        }
        boolean whole = Memory.getInt(address + FOOTER_CRC_AT) == Checksum.of(address, FOOTER_CRC_AT);
        return whole ? null : "the footer does not match its checksum";
    }

    static Footer readFooter(long address) {
        return new Footer(
                Memory.getLong(address),
                Memory.getLong(address + 8),
                Memory.getLong(address + 16),
                Memory.getLong(address + 24),
                Memory.getLong(address + 32),
                Memory.getLong(address + 40),
                Memory.getLong(address + 48),
                Memory.getInt(address + INDEX_CRC_AT),
                Memory.getInt(address + FILTER_CRC_AT),
                Memory.getInt(address + HASH_INDEX_CRC_AT),
                Memory.getInt(address + VERSION_AT));
    }
}
