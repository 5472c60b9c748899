package kv.lsm;

import java.util.Arrays;
import java.util.List;
import kv.lsm.memory.Keys;

/// The smallest and largest keys of a run's tables, which are in key order and do not overlap.
///
/// Behind what all bounds begin with, eight bytes of each are kept as a number: a search compares numbers in
/// two small arrays, and whole keys only where numbers are equal.
final class TableBounds {
    private final byte[][] smallest;
    private final byte[][] largest;
    private final byte[] commonPrefix;
    private final long[] smallestNumbers;
    private final long[] largestNumbers;

    /// @param tables one at least
    TableBounds(List<TableMetadata> tables) {
        smallest = tables.stream().map(TableMetadata::smallest).toArray(byte[][]::new);
        largest = tables.stream().map(TableMetadata::largest).toArray(byte[][]::new);
        commonPrefix = commonPrefix(smallest[0], largest[largest.length - 1]);
        smallestNumbers = numbers(smallest);
        largestNumbers = numbers(largest);
    }

    /// Keys are in order, so what the first and the last share, all share.
    private static byte[] commonPrefix(byte[] first, byte[] last) {
        int different = Arrays.mismatch(first, last);
        return different < 0 ? first : Arrays.copyOf(first, different);
    }

    private long[] numbers(byte[][] keys) {
        return Arrays.stream(keys)
                .mapToLong(key -> Keys.prefix(key, commonPrefix.length))
                .toArray();
    }

    /// The place of the only table that may hold `key`, or -1.
    int find(byte[] key) {
        if (Keys.compareToPrefix(key, commonPrefix) != 0) {
            return -1;
        }
        long number = Keys.prefix(key, commonPrefix.length);
        int index = firstEndingAtOrAfter(number);
        if (index < largest.length && largestNumbers[index] == number) {
            index = firstEndingAtOrAfter(key);
        }
        return index < largest.length && startsAtOrBefore(index, number, key) ? index : -1;
    }

    private boolean startsAtOrBefore(int index, long number, byte[] key) {
        int order = Long.compareUnsigned(smallestNumbers[index], number);
        return order < 0 || order == 0 && Arrays.compareUnsigned(smallest[index], key) <= 0;
    }

    private int firstEndingAtOrAfter(long number) {
        int low = 0;
        int high = largestNumbers.length;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (Long.compareUnsigned(largestNumbers[middle], number) < 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    /// The place of the first table whose largest key is at least `key`, or the number of tables.
    int firstEndingAtOrAfter(byte[] key) {
        int low = 0;
        int high = largest.length;
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
}
