package kv.lsm.table;

import kv.lsm.memory.Allocator;
import kv.lsm.memory.NativeBuffer;

/// Where one reader keeps a block that cannot be read in place: stored bytes of a positional read, and plain
/// bytes of a compressed block. Takes memory on first use. For one thread at a time.
public final class BlockBuffer implements AutoCloseable {
    private final Allocator allocator;
    private NativeBuffer stored;
    private NativeBuffer plain;
    private long end;

    public BlockBuffer(Allocator allocator) {
        this.allocator = allocator;
    }

    long storedRoom(int bytes) {
        stored = room(stored, bytes);
        return stored.address();
    }

    long plainRoom(int bytes) {
        plain = room(plain, bytes);
        return plain.address();
    }

    /// Notes where a loaded block ends, which may lie elsewhere than in this buffer.
    ///
    /// @return its address
    long loaded(long address, int bytes) {
        end = address + bytes;
        return address;
    }

    /// Of the block that was loaded last.
    long end() {
        return end;
    }

    private NativeBuffer room(NativeBuffer old, int bytes) {
        NativeBuffer buffer = old == null ? new NativeBuffer(allocator, Math.max(bytes, 8 << 10)) : old;
        buffer.clear();
        buffer.extend(bytes);
        return buffer;
    }

    long capacity() {
        return (stored == null ? 0 : stored.capacity()) + (plain == null ? 0 : plain.capacity());
    }

    /// Gives its memory back. It takes new when it is used again.
    void letGo() {
        if (stored != null) {
            stored.close();
            stored = null;
        }
        if (plain != null) {
            plain.close();
            plain = null;
        }
    }

    @Override
    public void close() {
        letGo();
    }
}
