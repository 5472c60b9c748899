package kv.lsm.table;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.Test;

class CheckedBlocksTest {
    private final Allocator allocator = new Allocator();

    @Test
    void blocksAreMarkedEachForItself() {
        long seed = new SplittableRandom().nextLong();
        SplittableRandom random = new SplittableRandom(seed);
        for (int round = 0; round < 200; round++) {
            List<long[]> blocks = new ArrayList<>();
            long end = 0;
            while (blocks.size() < 40) {
                int bytes = random.nextInt(1, random.nextInt(2, 20_000));
                blocks.add(new long[] {end, bytes});
                end += bytes + 63 & -64;
            }
            CheckedBlocks checked = new CheckedBlocks(end, allocator);
            Set<Integer> marked = new HashSet<>();
            for (int i = 0; i < 20; i++) {
                int chosen = random.nextInt(blocks.size());
                marked.add(chosen);
                checked.add(blocks.get(chosen)[0], (int) blocks.get(chosen)[1]);
            }
            for (int i = 0; i < blocks.size(); i++) {
                long start = blocks.get(i)[0];
                long bytes = blocks.get(i)[1];
                for (long position : new long[] {start, start + bytes / 2, start + bytes - 1}) {
                    assertThat(checked.contains(position))
                            .as("seed %d, block %d", seed, i)
                            .isEqualTo(marked.contains(i));
                }
            }
            checked.free();
        }
        assertThat(allocator.allocatedBytes()).isZero();
    }

    @Test
    void marksOfTwoThreadsInOnePlaceAreBothKept() throws Exception {
        int blocks = 64_000;
        CheckedBlocks checked = new CheckedBlocks(64L * blocks, allocator);
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 2; t++) {
            int first = t;
            threads.add(Thread.ofPlatform().start(() -> {
                for (int block = first; block < blocks; block += 2) {
                    checked.add(64L * block, 64);
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        for (int block = 0; block < blocks; block++) {
            assertThat(checked.contains(64L * block)).as("block %d", block).isTrue();
        }
        checked.free();
    }
}
