package kv.lsm;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import kv.lsm.memory.EntryIterator;
import kv.lsm.table.SSTable;

/// A sorted run whose tables are open, for reading. Keeps no table alive: the view that has it does.
final class OpenRun {
    private final SSTable[] tables;
    private final byte[][] smallest;
    private final byte[][] largest;

    OpenRun(Run run, Map<Long, SSTable> open) {
        List<TableMetadata> members = run.tables();
        tables = members.stream().map(table -> open.get(table.number())).toArray(SSTable[]::new);
        smallest = members.stream().map(TableMetadata::smallest).toArray(byte[][]::new);
        largest = members.stream().map(TableMetadata::largest).toArray(byte[][]::new);
    }

    SSTable[] tables() {
        return tables;
    }

    /// The only table that may hold `key`, or null.
    SSTable tableOf(byte[] key) {
        int index = firstEndingAtOrAfter(key);
        return index < tables.length && Arrays.compareUnsigned(smallest[index], key) <= 0 ? tables[index] : null;
    }

    private int firstEndingAtOrAfter(byte[] key) {
        int low = 0;
        int high = tables.length;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (Arrays.compareUnsigned(largest[middle], key) < 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    /// The entries from `startOrNull` on.
    EntryIterator iterator(byte[] startOrNull) {
        int first = startOrNull == null ? 0 : firstEndingAtOrAfter(startOrNull);
        return new RunIterator(Arrays.asList(tables).subList(first, tables.length), startOrNull);
    }
}
