package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/// Random operations under random options, against a sorted map; the options change with every restart.
class MetamorphicTest {
    private static final int OPERATIONS = 4_000;

    @TempDir
    Path directory;

    @TestFactory
    Stream<DynamicTest> theStoreBehavesLikeASortedMapWhateverItsOptions() {
        return Seeds.of(12)
                .mapToObj(seed -> DynamicTest.dynamicTest(
                        "-Dkv.seed=" + seed, () -> new History(seed, LsmStore::open).play()));
    }

    /// The check is checked: it has to find a store that now and then forgets a write.
    @Test
    void theCheckFindsAStoreThatForgetsAWrite() {
        History history = new History(1, options -> new ForgetfulStore(LsmStore.open(options)));
        assertThatThrownBy(history::play).isInstanceOf(AssertionError.class);
        history.store.close();
    }

    /// One sequence of operations.
    private final class History {
        private final Function<StoreOptions, Store> opener;
        private final SplittableRandom random;
        private final Path ownDirectory;
        private final Model model = new Model();
        private final RandomKeys keys;
        private final List<OpenCursor> cursors = new ArrayList<>();
        private Store store;

        private record OpenCursor(RangeCursor cursor, NavigableMap<byte[], byte[]> wanted) {}

        History(long seed, Function<StoreOptions, Store> opener) {
            this.opener = opener;
            random = new SplittableRandom(seed);
            ownDirectory = directory.resolve(Long.toHexString(seed));
            keys = new RandomKeys(random);
        }

        void play() {
            open();
            for (int i = 0; i < OPERATIONS; i++) {
                step();
            }
            model.checkAll(store);
            restart();
            model.checkAll(store);
            store.close();
        }

        private void open() {
            store = opener.apply(RandomOptions.draw(random, ownDirectory));
        }

        private void step() {
            int choice = random.nextInt(1_000);
            if (choice < 530) {
                byte[] key = keys.next();
                byte[] value = keys.value();
                store.put(key, value);
                model.put(key, value);
            } else if (choice < 550) {
                writeTogether();
            } else if (choice < 700) {
                byte[] key = keys.next();
                store.delete(key);
                model.delete(key);
            } else if (choice < 930) {
                model.checkGet(store, keys.next());
            } else if (choice < 950) {
                prefetch();
            } else if (choice < 985) {
                model.checkRange(store, keys.next(), random.nextBoolean() ? keys.next() : null, random.nextInt(100));
            } else if (choice < 990) {
                cursors.add(new OpenCursor(store.range(new byte[0], null), new TreeMap<>(model.entries())));
            } else if (choice < 995) {
                checkCursors();
            } else if (choice < 998) {
                restart();
            } else {
                model.checkAll(store);
            }
        }

        /// What was begun later wins, in whatever order they are awaited.
        private void writeTogether() {
            List<PendingWrite> begun = new ArrayList<>();
            for (int i = random.nextInt(20); i >= 0; i--) {
                byte[] key = keys.next();
                byte[] value = random.nextInt(4) == 0 ? null : keys.value();
                begun.add(random.nextInt(begun.size() + 1), store.begin(key, value));
                if (value == null) {
                    model.delete(key);
                } else {
                    model.put(key, value);
                }
            }
            begun.forEach(PendingWrite::await);
        }

        /// Changes nothing.
        private void prefetch() {
            byte[][] several = Stream.generate(keys::next).limit(random.nextInt(20)).toArray(byte[][]::new);
            store.prefetchGets(several, several.length);
            store.prefetchWrites(several, several.length);
        }

        /// Cursors show the state of their opening, whatever was written since.
        private void checkCursors() {
            for (OpenCursor open : cursors) {
                try (RangeCursor cursor = open.cursor) {
                    Model.checkCursor(cursor, open.wanted, Integer.MAX_VALUE);
                }
            }
            cursors.clear();
        }

        private void restart() {
            checkCursors();
            assertThat(store.isWritable()).isTrue();
            store.close();
            open();
        }
    }
}
