package kv.lsm.bench;

/// A permutation of the numbers below a size that takes no memory: a bijection of the next power of two, walked
/// until it is below the size.
final class Scramble {
    private static final int FACTOR = 0x2545F491;

    private final int size;
    private final int mask;
    private final int shift;

    Scramble(int size) {
        this.size = size;
        int bits = 32 - Integer.numberOfLeadingZeros(Math.max(size - 1, 1));
        mask = bits == 32 ? -1 : (1 << bits) - 1;
        shift = Math.max(bits / 2, 1);
    }

    int at(int i) {
        int x = i;
        do {
            x = (x * FACTOR + 1) & mask;
            x ^= x >>> shift;
            x = (x * FACTOR + 1) & mask;
        } while (x >= size);
        return x;
    }
}
