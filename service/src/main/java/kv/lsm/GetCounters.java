package kv.lsm;

import java.util.Arrays;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.IntUnaryOperator;

/// Counts gets and what each did to tables. Thread-safe.
///
/// A get adds to one counter and not to four, since each addition is atomic and a get short: to that of all
/// gets that did just as much. Gets that did more than [#FEW] of something are counted one by one.
final class GetCounters {
    private static final int BITS = 2;
    private static final int FEW = (1 << BITS) - 1;

    /// At `checks << 2 * BITS | negatives << BITS | reads` the gets that did this.
    private final LongAdder[] alike = new LongAdder[1 << 3 * BITS];

    private final LongAdder others = new LongAdder();
    private final LongAdder checksOfOthers = new LongAdder();
    private final LongAdder negativesOfOthers = new LongAdder();
    private final LongAdder readsOfOthers = new LongAdder();

    GetCounters() {
        Arrays.setAll(alike, index -> new LongAdder());
    }

    /// @param checks tables whose filter was asked
    /// @param negatives of these, filters that said no
    /// @param reads tables that were looked into
    void count(int checks, int negatives, int reads) {
        if ((checks | negatives | reads) <= FEW) {
            alike[checks << 2 * BITS | negatives << BITS | reads].increment();
            return;
        }
        others.increment();
        checksOfOthers.add(checks);
        negativesOfOthers.add(negatives);
        readsOfOthers.add(reads);
    }

    long gets() {
        return sum(index -> 1) + others.sum();
    }

    long checks() {
        return sum(index -> index >> 2 * BITS) + checksOfOthers.sum();
    }

    long negatives() {
        return sum(index -> index >> BITS & FEW) + negativesOfOthers.sum();
    }

    long reads() {
        return sum(index -> index & FEW) + readsOfOthers.sum();
    }

    private long sum(IntUnaryOperator ofEach) {
        long sum = 0;
        for (int index = 0; index < alike.length; index++) {
            sum += ofEach.applyAsInt(index) * alike[index].sum();
        }
        return sum;
    }
}
