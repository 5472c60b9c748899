package kv.lsm;

import java.util.Arrays;
import kv.lsm.log.WriteAheadLogFormat;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;

/// The entries of a [RadixTree] in key order as they were when records ended at a limit, while others insert.
final class RadixTreeIterator implements EntryIterator {
    /// Position before the entry whose key ends at the node; then come the key bytes 0 to 255.
    private static final int TERMINAL = -1;

    private final long limit;
    private long[] nodes = new long[16];
    private int[] positions = new int[16];
    private int depth;
    private long first;
    private long record;

    /// @param startOrNull the smallest key wanted
    /// @param limit records at or above this address are not seen
    RadixTreeIterator(RadixTree tree, byte[] startOrNull, long limit) {
        this.limit = limit;
        long root = tree.root();
        if (startOrNull != null) {
            seek(root, startOrNull);
        } else if (root != 0 && RadixTree.isNode(root)) {
            push(root, TERMINAL);
        } else {
            first = root;
        }
    }

    private void seek(long root, byte[] start) {
        long pointer = root;
        int matched = 0;
        while (pointer != 0) {
            if (!RadixTree.isNode(pointer)) {
                long candidate = RadixTree.visibleRecord(pointer, Long.MAX_VALUE);
                if (Keys.compare(
                                start,
                                WriteAheadLogFormat.keyAddress(candidate),
                                WriteAheadLogFormat.keyLength(candidate))
                        <= 0) {
                    first = pointer;
                }
                return;
            }
            int prefixLength = RadixNode.prefixLength(pointer);
            int order = comparePrefix(RadixTree.prefixAddress(pointer, matched), prefixLength, start, matched);
            matched += prefixLength;
            if (order < 0) {
                return;
            }
            if (order > 0 || matched >= start.length) {
                push(pointer, TERMINAL);
                return;
            }
            int next = start[matched++] & 0xFF;
            push(pointer, next + 1);
            long slot = RadixNode.childSlot(pointer, next);
            pointer = slot == 0 ? 0 : Memory.getLongAcquire(slot);
        }
    }

    /// Compares a prefix to as many bytes of `key` from `from` on.
    private static int comparePrefix(long prefix, int prefixLength, byte[] key, int from) {
        int common = Math.min(prefixLength, key.length - from);
        for (int i = 0; i < common; i++) {
            int difference = (Memory.getByte(prefix + i) & 0xFF) - (key[from + i] & 0xFF);
            if (difference != 0) {
                return difference;
            }
        }
        return 0;
    }

    @Override
    public boolean next() {
        if (first != 0) {
            record = RadixTree.visibleRecord(first, limit);
            first = 0;
            if (record != 0) {
                return true;
            }
        }
        while (depth > 0) {
            long node = nodes[depth - 1];
            int position = positions[depth - 1];
            long pointer;
            if (position == TERMINAL) {
                positions[depth - 1] = 0;
                pointer = Memory.getLongAcquire(RadixNode.terminalSlot(node));
            } else {
                int key = RadixNode.nextKey(node, position);
                if (key == 256) {
                    depth--;
                    continue;
                }
                positions[depth - 1] = key + 1;
                pointer = Memory.getLongAcquire(RadixNode.childSlot(node, key));
            }
            if (pointer == 0) {
                continue;
            }
            if (RadixTree.isNode(pointer)) {
                push(pointer, TERMINAL);
                continue;
            }
            record = RadixTree.visibleRecord(pointer, limit);
            if (record != 0) {
                return true;
            }
        }
        return false;
    }

    private void push(long node, int position) {
        if (depth == nodes.length) {
            nodes = Arrays.copyOf(nodes, 2 * depth);
            positions = Arrays.copyOf(positions, 2 * depth);
        }
        nodes[depth] = node;
        positions[depth++] = position;
    }

    @Override
    public long keyAddress() {
        return WriteAheadLogFormat.keyAddress(record);
    }

    @Override
    public int keyLength() {
        return WriteAheadLogFormat.keyLength(record);
    }

    @Override
    public long valueAddress() {
        return WriteAheadLogFormat.valueAddress(record);
    }

    @Override
    public int valueLength() {
        return WriteAheadLogFormat.valueLength(record);
    }

    @Override
    public void close() {
        depth = 0;
    }
}
