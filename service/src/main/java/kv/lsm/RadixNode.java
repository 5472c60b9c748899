package kv.lsm;

import kv.lsm.memory.Memory;

/// The nodes of a [RadixTree] in native memory. Nobody else knows their layout.
///
/// ```
/// 0   type 1 │ unused 1 │ count 2 │ prefix length 4
/// 8   the first 8 bytes of the prefix
/// 16  pointer to the entry whose key ends here
/// 24  type NODE4:   4 key bytes, 4 unused, 4 child pointers       64 bytes
///     type NODE16:  16 key bytes, 16 child pointers              168 bytes
///     type NODE48:  256 slot numbers (from 1), 48 child pointers 664 bytes
///     type NODE256: 256 child pointers                          2072 bytes
/// ```
///
/// One thread changes nodes while others read: a node's type and prefix never change; what is added is written
/// before the count, slot number or pointer that makes it visible is stored with release. Key bytes of NODE4
/// and NODE16 stand in the order of their coming.
final class RadixNode {
    static final int NODE4 = 0;
    static final int NODE16 = 1;
    static final int NODE48 = 2;
    static final int NODE256 = 3;

    /// Bytes of a prefix that a node holds; a longer one is read from a key below it.
    static final int STORED_PREFIX_BYTES = 8;

    private static final int COUNT_AT = 2;
    private static final int PREFIX_LENGTH_AT = 4;
    private static final int PREFIX_AT = 8;
    private static final int TERMINAL_AT = 16;
    private static final int BODY_AT = 24;
    private static final int CHILDREN4_AT = BODY_AT + 8;
    private static final int CHILDREN16_AT = BODY_AT + 16;
    private static final int CHILDREN48_AT = BODY_AT + 256;
    private static final int[] BYTES = {
        CHILDREN4_AT + 4 * 8, CHILDREN16_AT + 16 * 8, CHILDREN48_AT + 48 * 8, BODY_AT + 256 * 8
    };
    private static final int[] CHILDREN_MAX = {4, 16, 48, 256};

    private static final long ONES = 0x0101_0101_0101_0101L;
    private static final long HIGHS = 0x8080_8080_8080_8080L;

    private RadixNode() {}

    static int bytes(int type) {
        return BYTES[type];
    }

    static int type(long node) {
        return Memory.getByte(node);
    }

    static boolean isFull(long node) {
        return Memory.getUnsignedShort(node + COUNT_AT) == CHILDREN_MAX[type(node)];
    }

    static int prefixLength(long node) {
        return Memory.getInt(node + PREFIX_LENGTH_AT);
    }

    static long storedPrefix(long node) {
        return node + PREFIX_AT;
    }

    static long terminalSlot(long node) {
        return node + TERMINAL_AT;
    }

    /// Writes type and prefix of a new, zeroed node. `prefix` is the address of its bytes.
    static void initialize(long node, int type, long prefix, int prefixLength) {
        Memory.putByte(node, (byte) type);
        Memory.putInt(node + PREFIX_LENGTH_AT, prefixLength);
        Memory.copy(prefix, node + PREFIX_AT, Math.min(prefixLength, STORED_PREFIX_BYTES));
    }

    /// For a copy of a node whose prefix is longer than what is stored of it.
    static void setPrefixLength(long node, int prefixLength) {
        Memory.putInt(node + PREFIX_LENGTH_AT, prefixLength);
    }

    /// The address of the pointer to the child for `key` (0–255), or 0.
    static long childSlot(long node, int key) {
        switch (type(node)) {
            case NODE4 -> {
                int count = Memory.getUnsignedShortAcquire(node + COUNT_AT);
                int index = indexOf(Memory.getLong(node + BODY_AT), key);
                return index < count ? node + CHILDREN4_AT + 8L * index : 0;
            }
            case NODE16 -> {
                int count = Memory.getUnsignedShortAcquire(node + COUNT_AT);
                int index = indexOf(Memory.getLong(node + BODY_AT), key);
                if (index == 8) {
                    index = 8 + indexOf(Memory.getLong(node + BODY_AT + 8), key);
                }
                return index < count ? node + CHILDREN16_AT + 8L * index : 0;
            }
            case NODE48 -> {
                int slot = Memory.getUnsignedByteAcquire(node + BODY_AT + key);
                return slot == 0 ? 0 : node + CHILDREN48_AT + 8L * (slot - 1);
            }
            default -> {
                long slot = node + BODY_AT + 8L * key;
                return Memory.getLongAcquire(slot) == 0 ? 0 : slot;
            }
        }
    }

    /// The index of the first byte equal to `key`, or 8. Bytes not yet used are zero and may match `key` 0
    /// behind the count.
    private static int indexOf(long keys, int key) {
        long zeroWhereEqual = keys ^ (key * ONES);
        return Long.numberOfTrailingZeros((zeroWhereEqual - ONES) & ~zeroWhereEqual & HIGHS) >>> 3;
    }

    /// The smallest key byte that is at least `from` and has a child, or 256.
    static int nextKey(long node, int from) {
        int type = type(node);
        switch (type) {
            case NODE4, NODE16 -> {
                int count = Memory.getUnsignedShortAcquire(node + COUNT_AT);
                int next = 256;
                for (int i = 0; i < count; i++) {
                    int key = Memory.getByte(node + BODY_AT + i) & 0xFF;
                    if (key >= from && key < next) {
                        next = key;
                    }
                }
                return next;
            }
            default -> {
                int key = from;
                while (key < 256 && childSlot(node, key) == 0) {
                    key++;
                }
                return key;
            }
        }
    }

    /// Adds a child to a node that is not full and has none for `key`.
    static void addChild(long node, int key, long pointer) {
        int count = Memory.getUnsignedShort(node + COUNT_AT);
        switch (type(node)) {
            case NODE4 -> {
                Memory.putLong(node + CHILDREN4_AT + 8L * count, pointer);
                Memory.putByte(node + BODY_AT + count, (byte) key);
            }
            case NODE16 -> {
                Memory.putLong(node + CHILDREN16_AT + 8L * count, pointer);
                Memory.putByte(node + BODY_AT + count, (byte) key);
            }
            case NODE48 -> {
                Memory.putLong(node + CHILDREN48_AT + 8L * count, pointer);
                Memory.putByteRelease(node + BODY_AT + key, count + 1);
            }
            default -> Memory.putLongRelease(node + BODY_AT + 8L * key, pointer);
        }
        Memory.putShortRelease(node + COUNT_AT, count + 1);
    }

    /// Copies terminal and children of `node` to `copy`, an initialized node without any that has room for
    /// them.
    static void copyContent(long node, long copy) {
        Memory.putLong(copy + TERMINAL_AT, Memory.getLong(node + TERMINAL_AT));
        for (int key = nextKey(node, 0); key < 256; key = nextKey(node, key + 1)) {
            addChild(copy, key, Memory.getLong(childSlot(node, key)));
        }
    }

    /// The pointer to anything below `node`; an inner node has at least a child or a terminal.
    static long anyPointer(long node) {
        long terminal = Memory.getLongAcquire(node + TERMINAL_AT);
        if (terminal != 0) {
            return terminal;
        }
        return switch (type(node)) {
            case NODE4 -> Memory.getLongAcquire(node + CHILDREN4_AT);
            case NODE16 -> Memory.getLongAcquire(node + CHILDREN16_AT);
            case NODE48 -> Memory.getLongAcquire(node + CHILDREN48_AT);
            default -> Memory.getLongAcquire(childSlot(node, nextKey(node, 0)));
        };
    }
}
