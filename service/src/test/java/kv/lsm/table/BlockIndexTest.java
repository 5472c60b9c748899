package kv.lsm.table;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.stream.IntStream;
import kv.lsm.Records;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.NativeBuffer;
import org.junit.jupiter.api.Test;

class BlockIndexTest {
    private final Allocator allocator = new Allocator();

    private BlockIndex index(List<byte[]> separators) {
        NativeBuffer out = new NativeBuffer(allocator, 64);
        try (BlockIndexBuilder builder = new BlockIndexBuilder(allocator)) {
            for (int i = 0; i < separators.size(); i++) {
                builder.add(
                        Records.nativeCopy(separators.get(i)), separators.get(i).length, 64L * i, 10 + i, i % 2 == 1);
            }
            long bytes = builder.bytes();
            builder.finish(out);
            assertThat(out.size()).isEqualTo(bytes);
        }
        assertThat(BlockIndex.problem(out.address(), out.size())).isNull();
        return new BlockIndex(out.address(), allocator);
    }

    private static int wanted(List<byte[]> separators, byte[] key) {
        return (int) separators.stream()
                        .filter(s -> Arrays.compareUnsigned(s, key) <= 0)
                        .count()
                - 1;
    }

    @Test
    void tellsPlaceSizeAndCompressionOfABlock() {
        BlockIndex index = index(List.of(Records.bytes("a"), Records.bytes("b")));
        assertThat(index.start(1)).isEqualTo(64);
        assertThat(index.bytes(1)).isEqualTo(11);
        assertThat(index.isCompressed(0)).isFalse();
        assertThat(index.isCompressed(1)).isTrue();
    }

    @Test
    void blocksThatShareBytesOrLieOutsideTheDataAreAProblem() {
        NativeBuffer out = new NativeBuffer(allocator, 64);
        long[][] places = {{0, 64}, {64, 64}, {256, 100}};
        for (long[] bad : new long[][] {
            {}, {1, 0, 64, 1}, {1, 64, 400, 1}, {1, 64, 300, 2}, {2, 64, 10, 2}, {2, 320, 100, 2}, {0, 0, 4, 0}
        }) {
            out.clear();
            try (BlockIndexBuilder builder = new BlockIndexBuilder(allocator)) {
                for (int i = 0; i < places.length; i++) {
                    boolean wrong = bad.length > 0 && bad[0] == i;
                    builder.add(
                            Records.nativeCopy(new byte[] {(byte) i}),
                            1,
                            wrong ? bad[1] : places[i][0],
                            (int) (wrong ? bad[2] : places[i][1]),
                            false);
                }
                builder.finish(out);
            }
            BlockIndex index = new BlockIndex(out.address(), allocator);
            if (bad.length == 0) {
                assertThat(index.problemWithBlocks(384)).isNull();
            } else {
                assertThat(index.problemWithBlocks(384))
                        .isEqualTo("the index names a block outside the data or inside another: block=" + bad[3]);
            }
        }
    }

    @Test
    void findsTheBlockOfAPlaceInTheFile() {
        BlockIndex index = index(List.of(Records.bytes("a"), Records.bytes("b"), Records.bytes("c")));
        assertThat(IntStream.of(0, 63, 64, 127, 128, 500).map(index::blockAt)).containsExactly(0, 0, 1, 1, 2, 2);
    }

    @Test
    void aKeyBeforeAllBlocksIsInNone() {
        BlockIndex index = index(List.of(Records.bytes("user:5"), Records.bytes("user:7")));
        assertThat(index.find(Records.bytes("user:4"))).isEqualTo(-1);
        assertThat(index.find(Records.bytes("user"))).isEqualTo(-1);
        assertThat(index.find(Records.bytes("a"))).isEqualTo(-1);
        assertThat(index.find(Records.bytes("z"))).isEqualTo(1);
        assertThat(index.find(new byte[] {(byte) 0xFF})).isEqualTo(1);
    }

    @Test
    void keysWithEqualNumbersAreToldApartByTheirRest() {
        List<byte[]> separators = IntStream.range(0, 100)
                .mapToObj(i -> Records.bytes((i < 50 ? "prefix-aaaaaaaa%03d" : "prefix-bbbbbbbb%03d").formatted(i)))
                .toList();
        BlockIndex index = index(separators);
        for (int i = 0; i < 100; i++) {
            assertThat(index.find(separators.get(i))).isEqualTo(i);
            assertThat(index.find(Records.bytes(new String(separators.get(i)) + "x")))
                    .isEqualTo(i);
        }
        assertThat(index.find(Records.bytes("prefix-aaaaaaaa"))).isEqualTo(-1);
        assertThat(index.find(Records.bytes("prefix-bbbbbbbb"))).isEqualTo(49);
    }

    @Test
    void findsTheLastBlockWhoseSeparatorIsAtMostTheKeyForRandomKeysOfAnyBytes() {
        long seed = new SplittableRandom().nextLong();
        SplittableRandom random = new SplittableRandom(seed);
        for (int round = 0; round < 200; round++) {
            int lengthMax = random.nextInt(1, 14);
            int alphabet = random.nextInt(2, 257);
            TreeSet<byte[]> set = new TreeSet<>(Arrays::compareUnsigned);
            for (int i = random.nextInt(1, 160); i > 0; i--) {
                set.add(key(random, lengthMax, alphabet));
            }
            List<byte[]> separators = List.copyOf(set);
            BlockIndex index = index(separators);
            for (int i = 0; i < 100; i++) {
                byte[] key = key(random, lengthMax + 1, alphabet);
                assertThat(index.find(key))
                        .as("seed %d, key %s", seed, Arrays.toString(key))
                        .isEqualTo(wanted(separators, key));
            }
        }
    }

    @Test
    void everyNumberOfBlocksIsSearchedToItsEnds() {
        for (int blocks = 1; blocks <= 40; blocks++) {
            List<byte[]> separators = IntStream.range(0, blocks)
                    .mapToObj(i -> new byte[] {(byte) (5 * i + 3)})
                    .toList();
            BlockIndex index = index(separators);
            for (int i = 0; i < blocks; i++) {
                assertThat(index.find(new byte[] {(byte) (5 * i + 2)}))
                        .as("%d blocks", blocks)
                        .isEqualTo(i - 1);
                assertThat(index.find(new byte[] {(byte) (5 * i + 3)}))
                        .as("%d blocks", blocks)
                        .isEqualTo(i);
                assertThat(index.find(new byte[] {(byte) (5 * i + 4)}))
                        .as("%d blocks", blocks)
                        .isEqualTo(i);
            }
        }
    }

    @Test
    void givesBackItsMemory() {
        BlockIndex index = index(
                IntStream.range(0, 40).mapToObj(i -> new byte[] {(byte) i}).toList());
        long before = allocator.allocatedBytes();
        index.free();
        assertThat(before - allocator.allocatedBytes()).isEqualTo(5 * Long.BYTES); // (40 - 6 before the first) / 8
    }

    private static byte[] key(SplittableRandom random, int lengthMax, int alphabet) {
        byte[] key = new byte[random.nextInt(1, lengthMax + 1)];
        for (int i = 0; i < key.length; i++) {
            key[i] = (byte) (random.nextInt(alphabet) * 255 / (alphabet - 1));
        }
        return key;
    }
}
