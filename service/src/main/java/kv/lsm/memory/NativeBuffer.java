package kv.lsm.memory;

/// A growing run of native bytes, for what is put together before it is written: blocks, indexes, filters.
///
/// Not thread-safe. [#address] changes when the buffer grows.
public final class NativeBuffer implements AutoCloseable {
    private final Allocator allocator;
    private long address;
    private long capacity;
    private long size;

    public NativeBuffer(Allocator allocator, long capacity) {
        this.allocator = allocator;
        this.capacity = capacity;
        address = allocator.allocate(capacity);
    }

    public long address() {
        return address;
    }

    public long size() {
        return size;
    }

    public void clear() {
        size = 0;
    }

    /// Forgets all bytes from `newSize` on.
    public void truncate(long newSize) {
        size = newSize;
    }

    public long capacity() {
        return capacity;
    }

    /// Makes room for `bytes` at the end and returns where they go; their content is undefined.
    public long extend(long bytes) {
        long end = size + bytes;
        if (end > capacity) {
            grow(end);
        }
        long at = address + size;
        size = end;
        return at;
    }

    public void appendShort(int value) {
        Memory.putShort(extend(2), value);
    }

    public void appendInt(int value) {
        Memory.putInt(extend(4), value);
    }

    public void appendLong(long value) {
        Memory.putLong(extend(8), value);
    }

    public void append(long from, long bytes) {
        Memory.copy(from, extend(bytes), bytes);
    }

    public void append(NativeBuffer other) {
        append(other.address, other.size);
    }

    /// Appends zeros until the size is a multiple of `alignment`.
    public void pad(int alignment) {
        long bytes = -size & (alignment - 1);
        Memory.fill(extend(bytes), bytes, (byte) 0);
    }

    private void grow(long bytesNeeded) {
        long newCapacity = Math.max(bytesNeeded, capacity * 2);
        long newAddress = allocator.allocate(newCapacity);
        Memory.copy(address, newAddress, size);
        allocator.free(address, capacity);
        address = newAddress;
        capacity = newCapacity;
    }

    @Override
    public void close() {
        if (address != 0) {
            allocator.free(address, capacity);
            address = 0;
        }
    }
}
