package kv.lsm;

import java.util.Arrays;
import kv.lsm.log.WriteAheadLogFormat;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Mapped;
import kv.lsm.memory.Memory;

/// An ordered index from keys to the records of one write-ahead log: an adaptive radix tree (Leis et al., ICDE
/// 2013) with compressed paths, in native memory.
///
/// Chosen over a skip list because a search touches a node per distinguishing byte instead of twenty towers:
/// about four cache misses among half a million random keys.
///
/// 1. One thread at a time inserts; any number search and iterate meanwhile, without a lock.
/// 2. A record's address orders it in time. A record of a key that is already there goes in front of the older
///    ones, so a reader with a limit sees the newest record below its limit.
/// 3. Nothing is freed before the whole tree: a reader may stand on a node that was replaced; all that was
///    inserted before the replacement is still there.
///
/// A pointer is 0 (nothing), a node (bits 0 and 1 clear), a record (bit 0) or a chain (bit 1):
/// record 8 │ older pointer 8.
final class RadixTree {
    private static final long RECORD = 1;
    private static final long CHAIN = 2;
    private static final long TAGS = RECORD | CHAIN;
    private static final int CHAIN_BYTES = 16;

    private final NodeArena arena;
    private final long rootSlot;

    RadixTree(NodeArena arena) {
        this.arena = arena;
        rootSlot = arena.allocate(Long.BYTES);
    }

    static boolean isNode(long pointer) {
        return (pointer & TAGS) == 0;
    }

    /// @param pointer to a record or chain
    static long newestRecord(long pointer) {
        return (pointer & CHAIN) != 0 ? Memory.getLong(pointer - CHAIN) : pointer - RECORD;
    }

    /// A pointer to what was inserted for the key before [#newestRecord], or 0.
    ///
    /// @param pointer to a record or chain
    static long olderRecords(long pointer) {
        return (pointer & CHAIN) != 0 ? Memory.getLong(pointer - CHAIN + Long.BYTES) : 0;
    }

    long root() {
        return Memory.getLongAcquire(rootSlot);
    }

    /// The newest record of `key`, or 0.
    long find(byte[] key) {
        long pointer = root();
        int depth = 0;
        while (pointer != 0) {
            if (!isNode(pointer)) {
                long record = newestRecord(pointer);
                // the way down skipped prefixes without looking at them
                return Keys.equal(key, WriteAheadLogFormat.keyAddress(record), WriteAheadLogFormat.keyLength(record))
                        ? record
                        : 0;
            }
            depth += RadixNode.prefixLength(pointer);
            pointer = below(pointer, key, depth++);
        }
        return 0;
    }

    /// The pointer that `key` leads to, or 0.
    ///
    /// @param depth bytes of the key above and in the node
    private static long below(long node, byte[] key, int depth) {
        if (depth >= key.length) {
            return depth == key.length ? Memory.getLongAcquire(RadixNode.terminalSlot(node)) : 0;
        }
        long slot = RadixNode.childSlot(node, key[depth] & 0xFF);
        return slot == 0 ? 0 : Memory.getLongAcquire(slot);
    }

    /// Loads what lies on the ways of the first `count` keys, a node of each key after the other, so that they
    /// wait for memory together.
    ///
    /// @param room for so many keys
    /// @return a number made of all that was loaded
    long prefetch(byte[][] keys, int count, PrefetchRoom room) {
        long[] pointers = room.pointers();
        int[] depths = room.depths();
        Arrays.fill(pointers, 0, count, root());
        Arrays.fill(depths, 0, count, 0);
        long loaded = 0;
        for (boolean going = true; going; ) {
            going = false;
            for (int i = 0; i < count; i++) {
                long pointer = pointers[i];
                if (pointer == 0) {
                    continue;
                }
                if (isNode(pointer)) {
                    depths[i] += RadixNode.prefixLength(pointer);
                    pointers[i] = below(pointer, keys[i], depths[i]++);
                    going = true;
                } else {
                    loaded += Memory.getLong(pointer & ~TAGS); // the record, or the chain before it
                    pointers[i] = 0;
                }
            }
        }
        return loaded;
    }

    /// Makes `record` the newest of its key.
    void insert(long record) {
        long key = WriteAheadLogFormat.keyAddress(record);
        int length = WriteAheadLogFormat.keyLength(record);
        long slot = rootSlot;
        int depth = 0;
        while (true) {
            long pointer = Memory.getLong(slot);
            if (pointer == 0) {
                Memory.putLongRelease(slot, record | RECORD);
                return;
            }
            if (!isNode(pointer)) {
                replaceEntry(slot, pointer, record, depth);
                return;
            }
            int prefixLength = RadixNode.prefixLength(pointer);
            if (prefixLength > 0) {
                long prefix = prefixAddress(pointer, depth);
                int matching = Keys.mismatch(prefix, prefixLength, key + depth, length - depth, 0);
                if (matching < prefixLength) {
                    splitPrefix(slot, pointer, prefix, matching, record, depth);
                    return;
                }
                depth += prefixLength;
            }
            if (depth == length) {
                Mapped.throwPending();
                long terminal = RadixNode.terminalSlot(pointer);
                long older = Memory.getLong(terminal);
                Memory.putLongRelease(terminal, older == 0 ? record | RECORD : chain(record, older));
                return;
            }
            int next = Memory.getByte(key + depth) & 0xFF;
            long child = RadixNode.childSlot(pointer, next);
            if (child == 0) {
                Mapped.throwPending();
                addChild(slot, pointer, next, record | RECORD);
                return;
            }
            slot = child;
            depth++;
        }
    }

    /// The slot holds an entry: the same key gets a newer record, a different one a node above both.
    private void replaceEntry(long slot, long pointer, long record, int depth) {
        long other = newestRecord(pointer);
        long key = WriteAheadLogFormat.keyAddress(record);
        int length = WriteAheadLogFormat.keyLength(record);
        long otherKey = WriteAheadLogFormat.keyAddress(other);
        int otherLength = WriteAheadLogFormat.keyLength(other);
        int common = Keys.mismatch(key, length, otherKey, otherLength, depth);
        if (common == length && common == otherLength) {
            Mapped.throwPending();
            Memory.putLongRelease(slot, chain(record, pointer));
            return;
        }
        long node = newNode(RadixNode.NODE4, key + depth, common - depth);
        attach(node, otherKey, otherLength, common, pointer);
        attach(node, key, length, common, record | RECORD);
        Mapped.throwPending(); // or a node made of another record's key that could not be read would lead nowhere
        Memory.putLongRelease(slot, node);
    }

    /// The key leaves the path inside `node`'s prefix: a new node takes the matching part. Prefixes never
    /// change, so the rest goes to a copy of `node`.
    private void splitPrefix(long slot, long node, long prefix, int matching, long record, int depth) {
        long key = WriteAheadLogFormat.keyAddress(record);
        int length = WriteAheadLogFormat.keyLength(record);
        long parent = newNode(RadixNode.NODE4, prefix, matching);
        int rest = RadixNode.prefixLength(node) - matching - 1;
        long copy = newNode(RadixNode.type(node), prefix + matching + 1, rest);
        RadixNode.copyContent(node, copy);
        RadixNode.addChild(parent, Memory.getByte(prefix + matching) & 0xFF, copy);
        attach(parent, key, length, depth + matching, record | RECORD);
        Mapped.throwPending();
        Memory.putLongRelease(slot, parent);
    }

    private void addChild(long slot, long node, int key, long pointer) {
        if (!RadixNode.isFull(node)) {
            RadixNode.addChild(node, key, pointer);
            return;
        }
        int prefixLength = RadixNode.prefixLength(node);
        long grown = newNode(
                RadixNode.type(node) + 1,
                RadixNode.storedPrefix(node),
                Math.min(prefixLength, RadixNode.STORED_PREFIX_BYTES));
        RadixNode.setPrefixLength(grown, prefixLength);
        RadixNode.copyContent(node, grown);
        RadixNode.addChild(grown, key, pointer);
        Memory.putLongRelease(slot, grown);
    }

    private static void attach(long node, long key, int length, int depth, long pointer) {
        if (depth == length) {
            Memory.putLong(RadixNode.terminalSlot(node), pointer);
        } else {
            RadixNode.addChild(node, Memory.getByte(key + depth) & 0xFF, pointer);
        }
    }

    private long newNode(int type, long prefix, int prefixLength) {
        long node = arena.allocate(RadixNode.bytes(type));
        RadixNode.initialize(node, type, prefix, prefixLength);
        return node;
    }

    private long chain(long record, long older) {
        long chain = arena.allocate(CHAIN_BYTES);
        Memory.putLong(chain, record);
        Memory.putLong(chain + Long.BYTES, older);
        return chain | CHAIN;
    }

    /// Where the bytes of a node's prefix can be read.
    ///
    /// @param depth bytes of the key before the prefix
    static long prefixAddress(long node, int depth) {
        if (RadixNode.prefixLength(node) <= RadixNode.STORED_PREFIX_BYTES) {
            return RadixNode.storedPrefix(node);
        }
        long pointer = node;
        while (isNode(pointer)) {
            pointer = RadixNode.anyPointer(pointer);
        }
        return WriteAheadLogFormat.keyAddress(newestRecord(pointer)) + depth;
    }
}
