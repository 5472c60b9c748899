package kv.lsm;

import java.util.Arrays;
import kv.lsm.log.WriteAheadLogFormat;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;

/// The entries of a [RadixTree] in key order as they were when records ended at a limit, while others insert.
///
/// One call of [#next] looks at one record, also where that lies at or above the limit and is
/// [EntryIterator#INVISIBLE]: others may have inserted any number of those, behind the last entry or in front of
/// an older record of one key.
final class RadixTreeIterator implements EntryIterator {
    /// Position before the entry whose key ends at the node; then come the key bytes 0 to 255.
    private static final int TERMINAL = -1;

    private final long limit;
    private final long logEnd;
    private long[] nodes = new long[16];
    private int[] positions = new int[16];
    private int depth;
    /// What [#next] looks at before it goes on: the entry at which it starts, or the older records of a key.
    private long pending;
    private long record;
    /// Of the record; each is asked for once and held against the log's end, see [kv.lsm.memory.Mapped].
    private int keyLength;
    private int valueLength;

    /// @param startOrNull the smallest key wanted
    /// @param limit records at or above this address are not seen
    /// @param logEnd behind the last byte of the log that holds the records
    RadixTreeIterator(RadixTree tree, byte[] startOrNull, long limit, long logEnd) {
        this.limit = limit;
        this.logEnd = logEnd;
        long root = tree.root();
        if (startOrNull != null) {
            seek(root, startOrNull);
        } else if (root != 0 && RadixTree.isNode(root)) {
            push(root, TERMINAL);
        } else {
            pending = root;
        }
    }

    private void seek(long root, byte[] start) {
        long pointer = root;
        int matched = 0;
        while (pointer != 0) {
            if (!RadixTree.isNode(pointer)) {
                long candidate = RadixTree.newestRecord(pointer);
                int length = WriteAheadLogFormat.keyLength(candidate, logEnd);
                if (Keys.compare(start, WriteAheadLogFormat.keyAddress(candidate), length) <= 0) {
                    pending = pointer;
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
        long entry = pending != 0 ? pending : nextEntry();
        if (entry == 0) {
            return false;
        }
        record = RadixTree.newestRecord(entry);
        keyLength = WriteAheadLogFormat.keyLength(record, logEnd);
        if (record < limit) {
            valueLength = WriteAheadLogFormat.valueLength(record, keyLength, logEnd);
            pending = 0;
        } else {
            valueLength = INVISIBLE;
            pending = RadixTree.olderRecords(entry);
        }
        return true;
    }

    private long nextEntry() {
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
            if (pointer != 0) {
                if (!RadixTree.isNode(pointer)) {
                    return pointer;
                }
                push(pointer, TERMINAL);
            }
        }
        return 0;
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
        return keyLength;
    }

    @Override
    public long valueAddress() {
        return WriteAheadLogFormat.valueAddress(record, keyLength);
    }

    @Override
    public int valueLength() {
        return valueLength;
    }

    @Override
    public void close() {
        depth = 0;
    }
}
