package kv.lsm;

import java.util.Arrays;
import kv.lsm.table.SSTable;

/// What a prefetch writes down of its keys, one place for each. A thread uses the same arrays again and again:
/// made anew for each round they were nearly all that a GET left behind, and the more the fewer requests shared
/// them.
final class PrefetchRoom {
    private static final ThreadLocal<PrefetchRoom> OF_THREAD = ThreadLocal.withInitial(PrefetchRoom::new);
    /// As many as the largest round has.
    private static final int KEYS_MIN = 64;

    private long[] hashes;
    private byte[][] inMemtable;
    private byte[][] others;
    private SSTable[] tables;
    private long[] pointers;
    private int[] depths;

    PrefetchRoom() {
        make(KEYS_MIN);
    }

    private void make(int keys) {
        inMemtable = new byte[keys][];
        others = new byte[keys][];
        tables = new SSTable[keys];
        pointers = new long[keys];
        depths = new int[keys];
        hashes = new long[keys]; // last: its length says for how many there is room, should the heap be full
    }

    /// The calling thread's.
    static PrefetchRoom ofThread() {
        return OF_THREAD.get();
    }

    /// All arrays have at least `count` places then; what they held may be lost.
    void makeRoomFor(int count) {
        if (count > hashes.length) {
            make(count);
        }
    }

    /// Lets go of the keys and tables in the first `count` places.
    void letGo(int count) {
        Arrays.fill(inMemtable, 0, count, null);
        Arrays.fill(others, 0, count, null);
        Arrays.fill(tables, 0, count, null);
    }

    long[] hashes() {
        return hashes;
    }

    /// Keys of which the memtable's filter does not say that they are absent.
    byte[][] inMemtable() {
        return inMemtable;
    }

    byte[][] others() {
        return others;
    }

    SSTable[] tables() {
        return tables;
    }

    /// Where each key's way through a radix tree has come to, or where its next load from a table is.
    long[] pointers() {
        return pointers;
    }

    int[] depths() {
        return depths;
    }
}
