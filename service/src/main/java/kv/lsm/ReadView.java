package kv.lsm;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;
import kv.lsm.memory.RefCounted;
import kv.lsm.table.BlockBuffers;
import kv.lsm.table.SSTable;

/// Everything a read looks into at one moment, newest first: the active memtable, the frozen ones, the runs of
/// tables. Immutable but for the active memtable's growing. Owns its memtables and tables.
final class ReadView extends RefCounted {
    private final Memtable active;
    private final Memtable[] frozen;
    private final Version version;
    private final OpenRun[] runs;
    private final Map<Long, SSTable> open;
    private final int level0Runs;
    private final long tableBytes;

    /// @param frozen newest first
    /// @param open every table of the version, by number
    ReadView(Memtable active, List<Memtable> frozen, Version version, Map<Long, SSTable> open) {
        this.active = active;
        this.frozen = frozen.toArray(Memtable[]::new);
        this.version = version;
        this.open = Map.copyOf(open);
        runs = version.runs().stream().map(run -> new OpenRun(run, open)).toArray(OpenRun[]::new);
        level0Runs = version.level(0).size();
        tableBytes = open.values().stream().mapToLong(SSTable::fileBytes).sum();
        owned().forEach(RefCounted::retain);
    }

    /// What it keeps.
    Set<RefCounted> owned() {
        Set<RefCounted> owned = new LinkedHashSet<>(Arrays.asList(frozen));
        owned.add(active);
        owned.addAll(open.values());
        return owned;
    }

    Memtable active() {
        return active;
    }

    /// Newest first.
    List<Memtable> frozen() {
        return List.of(frozen);
    }

    int frozenCount() {
        return frozen.length;
    }

    Memtable oldestFrozen() {
        return frozen.length == 0 ? null : frozen[frozen.length - 1];
    }

    /// Frozen and active memtables, oldest first.
    List<Memtable> memtablesOldestFirst() {
        List<Memtable> memtables = new ArrayList<>(frozen()).reversed();
        List<Memtable> oldestFirst = new ArrayList<>(memtables);
        oldestFirst.add(active);
        return oldestFirst;
    }

    int level0Runs() {
        return level0Runs;
    }

    Version version() {
        return version;
    }

    OpenRun[] runs() {
        return runs;
    }

    SSTable table(long number) {
        return open.get(number);
    }

    Map<Long, SSTable> openTables() {
        return open;
    }

    /// The value of `key`, [SSTable#DELETED], or null when no memtable says.
    ///
    /// @param hash of the key, see [Keys#hash(byte\[\])]
    /// @param roomOrNull where the value may be put, and is returned, if it has just its length
    byte[] getFromMemtables(byte[] key, long hash, byte[] roomOrNull) {
        byte[] value = active.get(key, hash, roomOrNull);
        for (int i = 0; value == null && i < frozen.length; i++) {
            value = frozen[i].get(key, hash, roomOrNull);
        }
        return value;
    }

    /// Bytes of the files of all tables.
    long tableBytes() {
        return tableBytes;
    }

    /// Bytes of the mapped logs of all memtables.
    long logBytes() {
        long bytes = active.mappedBytes();
        for (Memtable memtable : frozen) {
            bytes += memtable.mappedBytes();
        }
        return bytes;
    }

    /// How a get reads tables.
    enum Reading {
        /// As if all were in memory: a page that is not stops the thread in a fault.
        AT_ONCE,
        /// What is in memory; [SSTable#NOT_CACHED] instead of waiting for the disk.
        WITHOUT_WAITING,
        /// What is in memory where it lies, other pages one by one.
        PATIENTLY
    }

    /// As [#getFromMemtables], from the tables; counts the get, but for one that ends with
    /// [SSTable#NOT_CACHED].
    byte[] getFromTables(
            byte[] key, long hash, byte[] roomOrNull, BlockBuffers buffers, Counters counters, Reading reading) {
        int checks = 0;
        int negatives = 0;
        int reads = 0;
        byte[] value = null;
        for (OpenRun run : runs) {
            SSTable table = run.tableOf(key);
            if (table == null) {
                continue;
            }
            long tableHash = table.hashOf(key, hash);
            if (table.shouldAskFilter()) {
                if (reading != Reading.AT_ONCE
                        && !table.isFilterThere(tableHash, buffers, reading == Reading.PATIENTLY, counters.diskReads)) {
                    return SSTable.NOT_CACHED;
                }
                checks++;
                if (!table.mayContain(tableHash)) {
                    negatives++;
                    table.sampleAbsence(hash, true);
                    continue;
                }
            }
            value = reading == Reading.AT_ONCE
                    ? table.get(key, tableHash, roomOrNull, buffers)
                    : table.getCold(key, tableHash, buffers, reading == Reading.PATIENTLY, counters.diskReads);
            if (value == SSTable.NOT_CACHED) {
                return value; // who waits counts
            }
            table.sampleAbsence(hash, value == null);
            if (value != null) {
                reads++;
                break;
            }
            reads += table.hasHashIndex() ? 0 : 1;
        }
        counters.gets.count(checks, negatives, reads);
        return value;
    }

    /// Loads what a get of each of the first `count` keys waits for, as a rule: the word of the active
    /// memtable's filter; then, of keys that this lets pass, what lies on their way through the memtable; of
    /// the others, run by run, the line of the hash index or filter, then the entry. A load that misses the
    /// cache holds up those behind it only when they need what it brings, so each is asked for all keys before
    /// the next.
    ///
    /// @param room for so many keys
    /// @return a number made of all that was loaded
    long prefetchGets(byte[][] keys, int count, PrefetchRoom room) {
        long[] hashes = room.hashes();
        long loaded = 0;
        for (int i = 0; i < count; i++) {
            hashes[i] = Keys.hash(keys[i]);
            loaded += active.prefetchFilter(hashes[i]);
        }
        byte[][] inMemtable = room.inMemtable();
        byte[][] others = room.others();
        int otherCount = 0;
        for (int i = 0; i < count; i++) {
            if (active.mayContain(hashes[i])) {
                inMemtable[i - otherCount] = keys[i];
            } else {
                hashes[otherCount] = hashes[i];
                others[otherCount++] = keys[i];
            }
        }
        loaded += active.prefetchIndex(inMemtable, count - otherCount, room);
        return loaded + prefetchFromTables(others, otherCount, room);
    }

    /// Where each key's load is comes first, then all loads at once: a processor goes on from a load that misses
    /// to the next few hundred instructions only, so the fewer lie between two loads the more are under way.
    ///
    /// @param room has the hashes of the first `count` keys
    private long prefetchFromTables(byte[][] keys, int count, PrefetchRoom room) {
        long[] hashes = room.hashes();
        SSTable[] tables = room.tables();
        long[] addresses = room.pointers();
        long loaded = 0;
        for (OpenRun run : runs) {
            for (int i = 0; i < count; i++) {
                SSTable table = run.tableOf(keys[i]);
                tables[i] = table;
                addresses[i] = table == null ? 0 : table.addressBeforeEntry(table.hashOf(keys[i], hashes[i]));
            }
            for (int i = 0; i < count; i++) {
                loaded += addresses[i] == 0 ? 0 : Memory.getLong(addresses[i]);
            }
            for (int i = 0; i < count; i++) {
                SSTable table = tables[i];
                addresses[i] = addresses[i] == 0 ? 0 : table.addressOfEntry(keys[i], table.hashOf(keys[i], hashes[i]));
            }
            for (int i = 0; i < count; i++) {
                loaded += addresses[i] == 0 ? 0 : tables[i].loadEntry(addresses[i]);
            }
        }
        return loaded;
    }

    /// All sources from `startOrNull` on, newest first.
    ///
    /// @param activeLimit limit of the active memtable, see [Memtable#limit]
    List<EntryIterator> sources(byte[] startOrNull, long activeLimit) {
        List<EntryIterator> sources = new ArrayList<>();
        sources.add(active.iterator(startOrNull, activeLimit));
        for (Memtable memtable : frozen) {
            sources.add(memtable.iterator(startOrNull, Long.MAX_VALUE));
        }
        for (OpenRun run : runs) {
            sources.add(run.iterator(startOrNull));
        }
        return sources;
    }

    @Override
    protected void dispose() {
        owned().forEach(RefCounted::release);
    }
}
