package kv.lsm.disk;

import java.io.EOFException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;

/// A whole file in memory of its own, from a disk that may not be able to give every page: for tools that make
/// the best of a damaged store.
///
/// What cannot be read is zeros here, and no checksum fits it, so whoever looks for damage finds it; [#gaps]
/// tells where it is. A mapping would do less: who touches a bad page of it gets an error or, in machine code,
/// a signal, and cannot go on behind.
public final class FileCopy implements AutoCloseable {
    /// A part that could not be read.
    public record Gap(long offset, long bytes, String reason) {
        @Override
        public String toString() {
            return "a part cannot be read: bytes=" + bytes + ", reason=" + reason;
        }
    }

    /// How much is read at once while all goes well.
    private static final int PIECE_BYTES = 256 << 10;

    private final Allocator allocator;
    private final long bytes;
    private final long address;
    private final List<Gap> gaps = new ArrayList<>();

    private FileCopy(long bytes, Allocator allocator) {
        this.allocator = allocator;
        this.bytes = bytes;
        address = allocator.allocate(capacity());
    }

    /// Reads the file.
    ///
    /// @throws IOException when it cannot be opened
    public static FileCopy of(Disk disk, Path path, Allocator allocator) throws IOException {
        ReadFile file = disk.open(path);
        try {
            FileCopy copy = new FileCopy(file.bytes(), allocator);
            copy.read(file, 0, copy.bytes, PIECE_BYTES);
            return copy;
        } finally {
            Closing.quietly(file::close, path);
        }
    }

    private long capacity() {
        return Math.max(bytes, 1);
    }

    /// Reads `[from, to)` in pieces; of a piece that cannot be read, each page by itself.
    private void read(ReadFile file, long from, long to, int pieceBytes) {
        for (long at = from; at < to; at += pieceBytes) {
            int count = (int) Math.min(pieceBytes, to - at);
            try {
                file.read(at, address + at, count);
            } catch (IOException e) {
                if (pieceBytes > Allocator.PAGE_BYTES) {
                    read(file, at, at + count, Allocator.PAGE_BYTES);
                } else {
                    Memory.fill(address + at, count, (byte) 0); // of which a part may have been read
                    addGap(new Gap(at, count, e.getMessage()));
                }
            }
        }
    }

    private void addGap(Gap gap) {
        Gap last = gaps.isEmpty() ? null : gaps.getLast();
        if (last != null && last.offset + last.bytes == gap.offset) {
            gaps.set(gaps.size() - 1, new Gap(last.offset, last.bytes + gap.bytes, last.reason));
        } else {
            gaps.add(gap);
        }
    }

    /// What could not be read, in the order of the file; neighbouring pages are one.
    public List<Gap> gaps() {
        return List.copyOf(gaps);
    }

    /// The copy in place of the file; valid until this is closed, and closing it does nothing.
    public ReadFile reader() {
        return new ReadFile() {
            @Override
            public long bytes() {
                return bytes;
            }

            @Override
            public long map() {
                return bytes == 0 ? 0 : address;
            }

            @Override
            public void read(long position, long to, int count) throws IOException {
                if (position < 0 || position + count > bytes) {
                    throw new EOFException("file ends early: offset=" + position + ", wanted=" + count);
                }
                Memory.copy(address + position, to, count);
            }

            @Override
            public void close() {}
        };
    }

    @Override
    public void close() {
        allocator.free(address, capacity());
    }
}
