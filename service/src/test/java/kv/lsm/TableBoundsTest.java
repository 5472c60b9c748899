package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

class TableBoundsTest {
    private static TableMetadata table(byte[] smallest, byte[] largest) {
        return new TableMetadata(1, 1, 1, 100, 2, 0, smallest, largest);
    }

    private static int wanted(List<TableMetadata> tables, byte[] key) {
        for (int i = 0; i < tables.size(); i++) {
            if (tables.get(i).overlaps(key, key)) {
                return i;
            }
        }
        return -1;
    }

    @Test
    void boundsWithEqualNumbersAreToldApartByTheirRest() {
        TableBounds bounds = new TableBounds(List.of(
                table(Records.bytes("key-aaaaaaaa1"), Records.bytes("key-aaaaaaaa3")),
                table(Records.bytes("key-aaaaaaaa5"), Records.bytes("key-aaaaaaaa7")),
                table(Records.bytes("key-b"), Records.bytes("key-b\0"))));
        assertThat(bounds.find(Records.bytes("key-aaaaaaaa2"))).isZero();
        assertThat(bounds.find(Records.bytes("key-aaaaaaaa4"))).isEqualTo(-1);
        assertThat(bounds.find(Records.bytes("key-aaaaaaaa7"))).isEqualTo(1);
        assertThat(bounds.find(Records.bytes("key-aaaaaaaa8"))).isEqualTo(-1);
        assertThat(bounds.find(Records.bytes("key-b"))).isEqualTo(2);
        assertThat(bounds.find(Records.bytes("key-b\0\0"))).isEqualTo(-1);
        assertThat(bounds.find(Records.bytes("key"))).isEqualTo(-1);
        assertThat(bounds.find(Records.bytes("z"))).isEqualTo(-1);
    }

    @Test
    void findsTheOnlyTableThatMayHoldAKeyForRandomBoundsOfAnyBytes() {
        long seed = new SplittableRandom().nextLong();
        SplittableRandom random = new SplittableRandom(seed);
        for (int round = 0; round < 500; round++) {
            int lengthMax = random.nextInt(1, 14);
            int alphabet = random.nextInt(2, 257);
            TreeSet<byte[]> ends = new TreeSet<>(Arrays::compareUnsigned);
            for (int i = random.nextInt(1, 80); i > 0; i--) {
                ends.add(key(random, lengthMax, alphabet));
            }
            List<TableMetadata> tables = new ArrayList<>();
            while (!ends.isEmpty()) {
                byte[] smallest = ends.pollFirst();
                tables.add(table(smallest, ends.isEmpty() || random.nextInt(4) == 0 ? smallest : ends.pollFirst()));
            }
            TableBounds bounds = new TableBounds(tables);
            for (int i = 0; i < 100; i++) {
                byte[] key = key(random, lengthMax + 1, alphabet);
                assertThat(bounds.find(key))
                        .as("seed %d, key %s", seed, Arrays.toString(key))
                        .isEqualTo(wanted(tables, key));
            }
        }
    }

    private static byte[] key(SplittableRandom random, int lengthMax, int alphabet) {
        byte[] key = new byte[random.nextInt(1, lengthMax + 1)];
        for (int i = 0; i < key.length; i++) {
            key[i] = (byte) (random.nextInt(alphabet) * 255 / (alphabet - 1));
        }
        return key;
    }
}
