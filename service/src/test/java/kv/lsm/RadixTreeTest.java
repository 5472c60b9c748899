package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.stream.Stream;
import kv.lsm.log.UnloggedFile;
import kv.lsm.log.WriteAheadLogFormat;
import kv.lsm.log.WriteAheadLogWriter;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Memory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

class RadixTreeTest {
    private static final int LOG_BYTES = 32 << 20;

    private final Allocator allocator = new Allocator();
    private final WriteAheadLogWriter log = new WriteAheadLogWriter(
            new UnloggedFile(allocator, LOG_BYTES), new WriteAheadLogFormat.Header(1, 0, 0), false);
    private final NodeArena arena = new NodeArena(allocator, 1 << 16);
    private final RadixTree tree = new RadixTree(arena);

    @AfterEach
    void freesAll() throws Exception {
        arena.free();
        log.close();
        assertThat(allocator.allocatedBytes()).isZero();
    }

    private long insert(byte[] key, byte[] value) {
        long record = log.append(key, value);
        tree.insert(record);
        return record;
    }

    private long limit() {
        return log.address() + log.end();
    }

    private static byte[] value(long record) {
        return Memory.copyOf(
                WriteAheadLogFormat.valueAddress(record, WriteAheadLogFormat.keyLength(record)),
                WriteAheadLogFormat.valueLength(record));
    }

    @TestFactory
    Stream<DynamicTest> findsAndOrdersWhatASortedMapDoes() {
        return Seeds.tests(30, this::compare);
    }

    private void compare(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        NodeArena ownArena = new NodeArena(allocator, 1 << 16);
        RadixTree ownTree = new RadixTree(ownArena);
        RandomKeys keys = new RandomKeys(random);
        NavigableMap<byte[], Long> model = new TreeMap<>(Arrays::compareUnsigned);
        for (int i = random.nextInt(1_000); i >= 0; i--) {
            byte[] key = keys.next();
            long record = log.append(key, new byte[0]);
            ownTree.insert(record);
            model.put(key, record);
        }
        for (int i = 0; i < 300; i++) {
            byte[] key = keys.next();
            assertThat(ownTree.find(key)).isEqualTo(model.getOrDefault(key, 0L));
            checkFrom(ownTree, key, model.tailMap(key, true));
        }
        checkFrom(ownTree, null, model);
        ownArena.free();
    }

    private static void checkFrom(RadixTree tree, byte[] start, NavigableMap<byte[], Long> wanted) {
        EntryIterator iterator = new RadixTreeIterator(tree, start, Long.MAX_VALUE, Long.MAX_VALUE);
        int checked = 0;
        for (var entry : wanted.entrySet()) {
            assertThat(iterator.next()).isTrue();
            assertThat(iterator.keyAddress()).isEqualTo(WriteAheadLogFormat.keyAddress(entry.getValue()));
            if (start != null && ++checked == 20) {
                return;
            }
        }
        assertThat(iterator.next()).isFalse();
    }

    @Test
    void everyChildCountKeepsItsChildrenInOrder() {
        List<Integer> order = new ArrayList<>();
        for (int i = 0; i < 256; i++) {
            order.add((i * 37) & 0xFF);
        }
        for (int i = 0; i < 256; i++) {
            insert(new byte[] {'p', order.get(i).byteValue(), 'x'}, new byte[0]);
            List<Integer> found = new ArrayList<>();
            EntryIterator iterator = new RadixTreeIterator(tree, null, limit(), Long.MAX_VALUE);
            while (iterator.next()) {
                found.add(Memory.getByte(iterator.keyAddress() + 1) & 0xFF);
            }
            assertThat(found)
                    .isEqualTo(order.subList(0, i + 1).stream().sorted().toList());
        }
    }

    @Test
    void aReaderWithALimitSeesTheOlderRecord() {
        long first = insert(Records.bytes("key"), Records.bytes("first"));
        long limit = limit();
        long second = insert(Records.bytes("key"), Records.bytes("second"));
        insert(Records.bytes("key2"), new byte[0]);
        assertThat(tree.find(Records.bytes("key"))).isEqualTo(second);
        EntryIterator iterator = new RadixTreeIterator(tree, null, limit, Long.MAX_VALUE);
        assertThat(iterator.next()).isTrue();
        assertThat(iterator.valueLength()).as("the second").isEqualTo(EntryIterator.INVISIBLE);
        assertThat(iterator.next()).isTrue();
        assertThat(iterator.valueAddress())
                .isEqualTo(WriteAheadLogFormat.valueAddress(first, WriteAheadLogFormat.keyLength(first)));
        assertThat(iterator.next()).isTrue();
        assertThat(iterator.valueLength()).as("key2").isEqualTo(EntryIterator.INVISIBLE);
        assertThat(iterator.next()).isFalse();
    }

    @TestFactory
    Stream<DynamicTest> eachCallLooksAtOneRecordOfThoseThatWereWrittenBehindTheLimit() {
        return Seeds.tests(20, this::countRecords);
    }

    private void countRecords(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        NodeArena ownArena = new NodeArena(allocator, 1 << 16);
        RadixTree ownTree = new RadixTree(ownArena);
        RandomKeys keys = new RandomKeys(random);
        NavigableMap<byte[], Long> visible = new TreeMap<>(Arrays::compareUnsigned);
        NavigableMap<byte[], Integer> newer = new TreeMap<>(Arrays::compareUnsigned);
        for (int i = random.nextInt(500); i > 0; i--) {
            byte[] key = keys.next();
            visible.put(key, log.append(key, new byte[0]));
            ownTree.insert(visible.get(key));
        }
        long limit = limit();
        for (int i = random.nextInt(500); i > 0; i--) {
            byte[] key = keys.next();
            ownTree.insert(log.append(key, new byte[0]));
            newer.merge(key, 1, Integer::sum);
        }
        byte[] start = keys.next();
        EntryIterator iterator = new RadixTreeIterator(ownTree, start, limit, Long.MAX_VALUE);
        NavigableMap<byte[], Long> seen = new TreeMap<>(Arrays::compareUnsigned);
        NavigableMap<byte[], Integer> passed = new TreeMap<>(Arrays::compareUnsigned);
        while (iterator.next()) {
            byte[] key = Memory.copyOf(iterator.keyAddress(), iterator.keyLength());
            if (iterator.valueLength() == EntryIterator.INVISIBLE) {
                assertThat(seen).as("newer records come first").doesNotContainKey(key);
                passed.merge(key, 1, Integer::sum);
            } else {
                assertThat(seen.put(key, iterator.keyAddress())).isNull();
            }
        }
        assertThat(passed).isEqualTo(newer.tailMap(start, true));
        assertThat(seen.keySet())
                .containsExactlyElementsOf(visible.tailMap(start, true).keySet());
        seen.forEach((key, address) -> assertThat(address).isEqualTo(WriteAheadLogFormat.keyAddress(visible.get(key))));
        ownArena.free();
    }

    @TestFactory
    Stream<DynamicTest> prefetchingGoesTheWayOfEachKeyToItsRecord() {
        return Seeds.tests(10, this::prefetch);
    }

    /// Where no key is there twice, what a prefetch loads last are the first eight bytes of the records.
    private void prefetch(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        NodeArena ownArena = new NodeArena(allocator, 1 << 16);
        RadixTree ownTree = new RadixTree(ownArena);
        for (int i = random.nextInt(2_000); i >= 0; i--) {
            ownTree.insert(log.append(
                    ByteBuffer.allocate(9)
                            .putInt(random.nextInt(40))
                            .putInt(i)
                            .put((byte) 0)
                            .array(),
                    new byte[0]));
        }
        byte[][] keys = new byte[20][];
        long wanted = 0;
        EntryIterator iterator = new RadixTreeIterator(ownTree, null, Long.MAX_VALUE, Long.MAX_VALUE);
        int count = 0;
        while (iterator.next() && count < keys.length) {
            byte[] key = Memory.copyOf(iterator.keyAddress(), iterator.keyLength());
            keys[count++] = key;
            wanted += Memory.getLong(ownTree.find(key));
        }
        PrefetchRoom room = new PrefetchRoom();
        room.makeRoomFor(keys.length);
        for (int i = 0; i < 2; i++) { // what the last prefetch left in the room does not matter
            assertThat(ownTree.prefetch(keys, count, room)).isEqualTo(wanted);
        }
        assertThat(ownTree.prefetch(keys, 0, room)).isZero();
        ownArena.free();
    }

    /// While one thread inserts, readers find everything that was inserted before they looked, in order.
    @Test
    void readersSeeEverythingInsertedBeforeWithoutALock() throws Exception {
        int count = 60_000;
        List<Throwable> failures = new ArrayList<>();
        List<Thread> readers = new ArrayList<>();
        Progress progress = new Progress();
        for (int r = 0; r < 2; r++) {
            int seed = r;
            readers.add(Thread.ofPlatform().start(() -> {
                try {
                    readAlong(progress, new SplittableRandom(seed), count);
                } catch (Throwable e) {
                    synchronized (failures) {
                        failures.add(e);
                    }
                }
            }));
        }
        for (int i = 0; i < count; i++) {
            insert(key(i), key(i));
            progress.inserted = i + 1;
        }
        for (Thread reader : readers) {
            reader.join();
        }
        assertThat(failures).isEmpty();
    }

    private static final class Progress {
        volatile int inserted;
    }

    private void readAlong(Progress progress, SplittableRandom random, int count) {
        while (progress.inserted < count) {
            int inserted = progress.inserted;
            if (inserted == 0) {
                continue;
            }
            int wanted = random.nextInt(inserted);
            long record = tree.find(key(wanted));
            assertThat(record).as("key %d of %d", wanted, inserted).isNotZero();
            assertThat(value(record)).isEqualTo(key(wanted));
            if (random.nextInt(1_000) == 0) {
                EntryIterator iterator = new RadixTreeIterator(tree, null, Long.MAX_VALUE, Long.MAX_VALUE);
                int seen = 0;
                byte[] last = new byte[0];
                while (iterator.next()) {
                    byte[] key = Memory.copyOf(iterator.keyAddress(), iterator.keyLength());
                    assertThat(Arrays.compareUnsigned(last, key)).isNegative();
                    last = key;
                    seen++;
                }
                assertThat(seen).isGreaterThanOrEqualTo(inserted);
            }
        }
    }

    /// Scattered over the key space, so that nodes of all sizes grow.
    private static byte[] key(int i) {
        return ByteBuffer.allocate(8).putLong((i + 1L) * 0x9E37_79B9_7F4A_7C15L).array();
    }
}
