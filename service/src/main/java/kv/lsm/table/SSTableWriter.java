package kv.lsm.table;

import java.io.IOException;
import java.nio.file.Path;
import kv.lsm.Compression;
import kv.lsm.TimeSlices;
import kv.lsm.disk.Disk;
import kv.lsm.disk.WriteFile;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Checksum;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;
import kv.lsm.memory.NativeBuffer;

/// Writes one table, from the smallest key to the largest. For one thread.
///
/// Holds off-heap: one piece (128 KiB; at the end of a table index, filter and hash index), about 30 bytes per
/// block for the index and 12 bytes per key for filter and hash index.
public final class SSTableWriter implements AutoCloseable {
    /// What is written at once. While the kernel copies it nothing else has the processor; 2 MiB took 6.5 ms
    /// where the host of a virtual machine had memory to find first. That much at a time would be kept and
    /// mapped as a huge page, which made GET some percent cheaper: `docs/results/2026-11-23-service-steps.md`.
    private static final int PIECE_BYTES = 128 << 10;
    /// Of index, filter and hash index. A huge page: in small ones a GET of two million keys took a tenth longer,
    /// `docs/results/2026-11-28-service.md`.
    private static final int LAST_PIECE_BYTES = 2 << 20;

    private final WriteFile file;
    private final TableOptions options;
    private final NativeBuffer out;
    private final NativeBuffer scratch;
    private final NativeBuffer hashes;
    private final NativeBuffer positionsOrNull;
    private final NativeBuffer lastKey;
    private final DataBlockBuilder block;
    private final BlockIndexBuilder index;
    private final NativeBuffer separator;
    private final TimeSlices slices;
    private byte[] smallest;
    private long writtenBytes;
    private long entries;
    private long tombstones;

    /// @param slices of the thread that writes; the caller ends a step with each entry, this class with each
    /// while it finishes the table
    public SSTableWriter(Disk disk, Path path, TableOptions options, Allocator allocator, TimeSlices slices)
            throws IOException {
        this.options = options;
        this.slices = slices;
        file = disk.create(path);
        out = new NativeBuffer(allocator, PIECE_BYTES + 2L * options.blockBytes());
        scratch = new NativeBuffer(allocator, 64);
        hashes = new NativeBuffer(allocator, 64 << 10);
        positionsOrNull = options.hashIndex() ? new NativeBuffer(allocator, 32 << 10) : null;
        lastKey = new NativeBuffer(allocator, 64);
        separator = new NativeBuffer(allocator, 64);
        block = new DataBlockBuilder(allocator, options.blockBytes());
        index = new BlockIndexBuilder(allocator);
    }

    /// Adds an entry whose key is greater than all before.
    ///
    /// @param valueLength bytes, or [EntryIterator#TOMBSTONE]
    public void add(long key, int keyLength, long value, int valueLength) throws IOException {
        assert entries == 0 || Keys.compare(key, keyLength, lastKey.address(), (int) lastKey.size()) > 0
                : "keys out of order";
        if (block.isFullFor(keyLength + Math.max(valueLength, 0L))) {
            finishBlock();
        }
        if (block.isEmpty()) {
            startBlock(key, keyLength);
        }
        block.add(key, keyLength, value, valueLength);
        if (options.bloomBitsPerKey() > 0 || options.hashIndex()) {
            hashes.appendLong(Keys.hash(key, keyLength));
        }
        lastKey.clear();
        lastKey.append(key, keyLength);
        entries++;
        if (valueLength == EntryIterator.TOMBSTONE) {
            tombstones++;
        }
    }

    public long entries() {
        return entries;
    }

    /// Bytes of the file if it ended here, but for the block under construction and padding.
    public long bytes() {
        return writtenBytes
                + out.size()
                + index.bytes()
                + entries * options.bloomBitsPerKey() / 8
                + (options.hashIndex() ? HashIndex.bytes(entries) : 0);
    }

    private void startBlock(long key, int keyLength) {
        separator.clear();
        if (entries == 0) {
            smallest = Memory.copyOf(key, keyLength);
            separator.append(key, keyLength);
        } else {
            int common = Keys.mismatch(key, keyLength, lastKey.address(), (int) lastKey.size(), 0);
            separator.append(key, common + 1);
        }
    }

    private void finishBlock() throws IOException {
        long start = writtenBytes + out.size();
        long startInOut = out.size();
        block.finish(out, start, positionsOrNull);
        boolean compressed = options.compression() == Compression.LZ4
                && BlockCompressor.compress(out, out.size() - startInOut, scratch);
        out.appendInt(Checksum.of(out.address() + startInOut, out.size() - startInOut));
        index.add(separator.address(), (int) separator.size(), start, (int) (out.size() - startInOut), compressed);
        out.pad(SSTableFormat.ALIGNMENT_BYTES);
        writePieces();
    }

    private void writePieces() throws IOException {
        if (out.size() >= PIECE_BYTES) {
            write(out.size() & -PIECE_BYTES, PIECE_BYTES); // more than one piece where a value is larger
        }
    }

    /// The first `bytes` of what is put together, each piece to the next multiple of `pieceBytes` in the file;
    /// keeps the rest.
    private void write(long bytes, int pieceBytes) throws IOException {
        for (long done = 0; done < bytes; ) {
            long piece = Math.min(bytes - done, pieceBytes - (writtenBytes + done) % pieceBytes);
            file.write(Memory.buffer(out.address() + done, piece));
            done += piece;
            if (!slices.isBehind()) {
                file.beginWriting();
            }
            slices.checkTime();
        }
        written(bytes);
    }

    /// The first `bytes` of what is put together are in the file; keeps the rest.
    private void written(long bytes) {
        writtenBytes += bytes;
        long rest = out.size() - bytes;
        Memory.copy(out.address() + bytes, out.address(), rest);
        out.truncate(rest);
    }

    /// Writes what is left and makes the file durable; at least one entry was added.
    public TableSummary finish() throws IOException {
        finishBlock();
        long indexInOut = out.size();
        index.finish(out);
        long indexBytes = out.size() - indexInOut;
        int indexCrc = Checksum.of(out.address() + indexInOut, indexBytes);
        out.pad(SSTableFormat.ALIGNMENT_BYTES);
        long filterInOut = out.size();
        if (options.bloomBitsPerKey() > 0) {
            BloomFilter.write(hashes, options.bloomBitsPerKey(), out, slices);
        }
        long filterBytes = out.size() - filterInOut;
        int filterCrc = Checksum.of(out.address() + filterInOut, filterBytes);
        long hashIndexInOut = out.size();
        long dataBytes = writtenBytes + indexInOut;
        if (positionsOrNull != null && HashIndex.reaches(dataBytes)) {
            HashIndex.write(hashes, positionsOrNull, dataBytes, out, slices);
        }
        long hashIndexBytes = out.size() - hashIndexInOut;
        int hashIndexCrc = Checksum.of(out.address() + hashIndexInOut, hashIndexBytes);
        long footer = out.extend(SSTableFormat.FOOTER_BYTES);
        SSTableFormat.writeFooter(
                footer,
                new SSTableFormat.Footer(
                        dataBytes,
                        indexBytes,
                        writtenBytes + filterInOut,
                        filterBytes,
                        writtenBytes + hashIndexInOut,
                        hashIndexBytes,
                        entries,
                        indexCrc,
                        filterCrc,
                        hashIndexCrc,
                        SSTableFormat.VERSION));
        write(out.size(), LAST_PIECE_BYTES); // some 4.5 MB for a table of 64 MiB and short values
        file.sync();
        return new TableSummary(
                writtenBytes, entries, tombstones, smallest, Memory.copyOf(lastKey.address(), (int) lastKey.size()));
    }

    @Override
    public void close() throws IOException {
        out.close();
        scratch.close();
        hashes.close();
        if (positionsOrNull != null) {
            positionsOrNull.close();
        }
        lastKey.close();
        separator.close();
        block.close();
        index.close();
        file.close();
    }
}
