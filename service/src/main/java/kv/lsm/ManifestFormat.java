package kv.lsm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import kv.lsm.memory.Checksum;

/// The bytes of the manifest; `service/docs/manifest-format.md` is its specification.
///
/// ```
/// file    magic 8 │ version 4 │ zero 4 │ records
/// record  bytes of the edit 4 │ crc of these 4 │ edit │ crc of the edit 4
/// edit    first log 8 │ logged 1 │ next number 8
///         │ removed count 4 │ number 8 × count
///         │ added count 4 │ table × count
/// table   number 8 │ level 4 │ run 8 │ bytes 8 │ entries 8 │ tombstones 8
///         │ smallest length 2 │ smallest │ largest length 2 │ largest
/// ```
///
/// Numbers are little-endian. The edits in order, applied to an empty version, give the current one.
final class ManifestFormat {
    /// "kvmanif1" when read as text.
    static final long MAGIC = 0x3166696E616D766BL;
    static final int VERSION = 1;
    static final int HEADER_BYTES = 16;
    static final int RECORD_HEADER_BYTES = 8;
    static final int RECORD_TRAILER_BYTES = 4;

    private static final int SECTOR_BYTES = 512;
    private static final int EDIT_FIXED_BYTES = 8 + 1 + 8 + 4 + 4;
    private static final int TABLE_FIXED_BYTES = 8 + 4 + 8 + 8 + 8 + 8 + 2 + 2;

    private ManifestFormat() {}

    static ByteBuffer header() {
        return buffer(HEADER_BYTES).putLong(MAGIC).putInt(VERSION).putInt(0).flip();
    }

    static ByteBuffer record(VersionEdit edit) {
        int bytes = EDIT_FIXED_BYTES + Long.BYTES * edit.removed().size();
        for (TableMetadata table : edit.added()) {
            bytes += TABLE_FIXED_BYTES + table.smallest().length + table.largest().length;
        }
        ByteBuffer record = buffer(RECORD_HEADER_BYTES + bytes + RECORD_TRAILER_BYTES);
        record.putInt(bytes);
        record.putInt(Checksum.of(record.slice(0, 4)));
        record.putLong(edit.firstLog()).put((byte) (edit.logged() ? 1 : 0)).putLong(edit.nextNumber());
        record.putInt(edit.removed().size());
        edit.removed().forEach(record::putLong);
        record.putInt(edit.added().size());
        edit.added().forEach(table -> putTable(record, table));
        record.putInt(Checksum.of(record.slice(RECORD_HEADER_BYTES, bytes)));
        return record.flip();
    }

    private static void putTable(ByteBuffer record, TableMetadata table) {
        record.putLong(table.number()).putInt(table.level()).putLong(table.run());
        record.putLong(table.bytes()).putLong(table.entries()).putLong(table.tombstones());
        record.putShort((short) table.smallest().length).put(table.smallest());
        record.putShort((short) table.largest().length).put(table.largest());
    }

    /// The bytes of the whole record at `offset`, which may reach beyond the file, or -1 when no header is
    /// there.
    static long announcedBytes(ByteBuffer file, int offset) {
        if (file.limit() - offset < RECORD_HEADER_BYTES
                || file.getInt(offset + 4) != Checksum.of(file.slice(offset, 4))
                || file.getInt(offset) < EDIT_FIXED_BYTES) {
            return -1;
        }
        return (long) file.getInt(offset) + RECORD_HEADER_BYTES + RECORD_TRAILER_BYTES;
    }

    /// The bytes of the whole record at `offset`, or -1 when there is no valid one.
    static int validRecordBytes(ByteBuffer file, int offset) {
        long bytes = announcedBytes(file, offset);
        if (bytes < 0 || bytes > file.limit() - offset) {
            return -1;
        }
        int end = offset + (int) bytes - RECORD_TRAILER_BYTES;
        int crc = Checksum.of(file.slice(offset + RECORD_HEADER_BYTES, end - offset - RECORD_HEADER_BYTES));
        return crc == file.getInt(end) ? (int) bytes : -1;
    }

    /// Where the next valid record lies behind the broken one at `offset`, or the end of the file.
    ///
    /// The bounds of tables are users' keys, and a key may look like a record. So nothing is looked for inside a
    /// record whose header is whole; where none is, what looks like a record counts if another or the end of the
    /// file follows it.
    static int nextValidOffset(ByteBuffer file, int offset) {
        boolean isKnownPlace = true;
        for (int at = offset; at < file.limit(); ) {
            long bytes = announcedBytes(file, at);
            isKnownPlace = bytes > 0 && (isKnownPlace || isFollowed(file, at + bytes));
            if (isKnownPlace && validRecordBytes(file, at) > 0) {
                return at;
            }
            at = isKnownPlace ? (int) Math.min(at + bytes, file.limit()) : at + 1;
        }
        return file.limit();
    }

    private static boolean isFollowed(ByteBuffer file, long end) {
        return end == file.limit() || end < file.limit() && announcedBytes(file, (int) end) > 0;
    }

    /// True when what stands from `offset` on can be an append that power loss cut off: the file ends inside
    /// it, or a sector of it was never written and reads as zeros.
    static boolean isTorn(ByteBuffer file, int offset) {
        if (file.limit() - offset < RECORD_HEADER_BYTES || announcedBytes(file, offset) > file.limit() - offset) {
            return true;
        }
        for (int end = offset / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES; end < file.limit(); end += SECTOR_BYTES) {
            if (endsInZeros(file, offset, end)) {
                return true;
            }
        }
        return endsInZeros(file, offset, file.limit());
    }

    /// True when the last eight bytes before `end` are zero, or as many as there are of the record and of the
    /// sector that ends there: the last sector may hold a byte or two of the record.
    private static boolean endsInZeros(ByteBuffer file, int offset, int end) {
        int sector = (end - 1) / SECTOR_BYTES * SECTOR_BYTES;
        for (int i = Math.max(Math.max(offset, sector), end - Long.BYTES); i < end; i++) {
            if (file.get(i) != 0) {
                return false;
            }
        }
        return true;
    }

    /// Decodes the valid record at `offset`.
    static VersionEdit edit(ByteBuffer file, int offset) {
        ByteBuffer record = file.duplicate().order(ByteOrder.LITTLE_ENDIAN).position(offset + RECORD_HEADER_BYTES);
        long firstLog = record.getLong();
        boolean logged = record.get() != 0;
        long nextNumber = record.getLong();
        List<Long> removed = new ArrayList<>();
        for (int i = record.getInt(); i > 0; i--) {
            removed.add(record.getLong());
        }
        List<TableMetadata> added = new ArrayList<>();
        for (int i = record.getInt(); i > 0; i--) {
            added.add(new TableMetadata(
                    record.getLong(),
                    record.getInt(),
                    record.getLong(),
                    record.getLong(),
                    record.getLong(),
                    record.getLong(),
                    bytes(record),
                    bytes(record)));
        }
        return new VersionEdit(firstLog, logged, nextNumber, removed, added);
    }

    private static byte[] bytes(ByteBuffer record) {
        byte[] bytes = new byte[record.getShort() & 0xFFFF];
        record.get(bytes);
        return bytes;
    }

    private static ByteBuffer buffer(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
}
