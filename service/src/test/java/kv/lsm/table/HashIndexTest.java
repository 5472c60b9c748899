package kv.lsm.table;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import kv.lsm.TimeSlices;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Memory;
import kv.lsm.memory.NativeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HashIndexTest {
    private static final byte[] ANY_KEY = {1};

    private final Allocator allocator = new Allocator();

    private static long hash(int i) {
        return Keys.hash(ByteBuffer.allocate(4).putInt(i).array());
    }

    private NativeBuffer written(List<Long> hashes, List<Long> positions, long dataBytes) {
        NativeBuffer hashBuffer = new NativeBuffer(allocator, 64);
        NativeBuffer positionBuffer = new NativeBuffer(allocator, 64);
        hashes.forEach(hashBuffer::appendLong);
        positions.forEach(position -> positionBuffer.appendInt((int) (long) position));
        NativeBuffer out = new NativeBuffer(allocator, 64);
        HashIndex.write(hashBuffer, positionBuffer, dataBytes, out, TimeSlices.endless());
        assertThat(out.size()).isEqualTo(HashIndex.bytes(hashes.size()));
        assertThat(HashIndex.problem(out.address(), out.size())).isNull();
        return out;
    }

    /// All places that the index names for a hash.
    private static List<Long> named(HashIndex index, long hash) {
        List<Long> named = new ArrayList<>();
        assertThat(index.find(ANY_KEY, hash, (key, position) -> {
                    named.add(position);
                    return 0;
                }))
                .isZero();
        return named;
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 9, 10, 1_000, 100_000})
    void namesThePlaceOfEveryKeyAndFewForAbsentOnes(int keys) {
        List<Long> hashes = new ArrayList<>();
        List<Long> positions = new ArrayList<>();
        for (int i = 0; i < keys; i++) {
            hashes.add(hash(i));
            positions.add(2L + 600L * i);
        }
        HashIndex index = new HashIndex(written(hashes, positions, 60_000_000).address());
        long extra = 0;
        for (int i = 0; i < keys; i++) {
            List<Long> named = named(index, hash(i));
            assertThat(named).as("key %d of %d", i, keys).contains(2L + 600L * i);
            extra += named.size() - 1 + named(index, hash(keys + i)).size();
        }
        // tags of 8 bits and the 6 bits that 26 bits of position leave: with one bit less it would be twice as
        // many
        assertThat(extra).isLessThanOrEqualTo(3 + keys / 450);
    }

    @Test
    void stopsAtTheEntryThatWasWanted() {
        long hash = hash(5);
        HashIndex index = new HashIndex(
                written(List.of(hash, hash), List.of(70L, 90L), 100).address());
        List<Long> seen = new ArrayList<>();
        long found = index.find(ANY_KEY, hash, (key, position) -> {
            seen.add(position);
            return 1_000 + position;
        });
        assertThat(seen).hasSize(1);
        assertThat(found).isEqualTo(1_000 + seen.getFirst());
    }

    @Test
    void keysOfAFullLineAreFoundInTheNextOnesAndBehindTheLastLineInTheFirst() {
        List<Long> hashes = new ArrayList<>();
        List<Long> positions = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            hashes.add(-1L - i); // the last line of them all
            positions.add(100L + i);
        }
        HashIndex index = new HashIndex(written(hashes, positions, 1 << 20).address());
        for (int i = 0; i < 40; i++) {
            assertThat(named(index, -1L - i)).as("key %d", i).contains(100L + i);
        }
        assertThat(named(index, hash(1))).isEmpty();
    }

    @Test
    void aLineThatEveryKeyPassedIsAnEndAllTheSame() {
        NativeBuffer bytes = written(List.of(hash(1)), List.of(7L), 100);
        Memory.putByte(bytes.address() + HashIndex.HEADER_BYTES + HashIndex.SLOTS + 1, (byte) 0xFF);
        assertThat(named(new HashIndex(bytes.address()), hash(2))).isEmpty();
    }

    @Test
    void placesOfATableOfFourGibibytesAreTold() {
        long dataBytes = 1L << 32;
        assertThat(HashIndex.reaches(dataBytes)).isTrue();
        assertThat(HashIndex.reaches(dataBytes + 1)).isFalse();
        HashIndex index = new HashIndex(written(List.of(hash(1), hash(2)), List.of(2L, dataBytes - 1), dataBytes)
                .address());
        assertThat(named(index, hash(1))).containsExactly(2L);
        assertThat(named(index, hash(2))).containsExactly(dataBytes - 1);
    }

    @Test
    void aSizeThatDoesNotFitIsAProblem() {
        NativeBuffer bytes = written(List.of(hash(1)), List.of(7L), 100);
        assertThat(HashIndex.problem(bytes.address(), bytes.size() - 1)).contains("does not fit its size");
        assertThat(HashIndex.problem(bytes.address(), 63)).contains("does not fit its size");
        for (int positionBits : new int[] {-1, 0, 33}) {
            Memory.putInt(bytes.address() + 4, positionBits);
            assertThat(HashIndex.problem(bytes.address(), bytes.size())).contains("does not fit its size");
        }
        Memory.putInt(bytes.address() + 4, 7);
        for (int lines : new int[] {-1, 0}) {
            Memory.putInt(bytes.address(), lines);
            assertThat(HashIndex.problem(bytes.address(), HashIndex.HEADER_BYTES + 64L * lines))
                    .contains("does not fit its size");
        }
    }
}
