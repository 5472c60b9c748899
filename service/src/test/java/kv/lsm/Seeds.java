package kv.lsm;

import java.util.SplittableRandom;
import java.util.stream.LongStream;

/// Seeds of random tests: fresh ones each run, or `-Dkv.seed=N` for one seen before; `-Dkv.rounds=N` for more of them.
final class Seeds {
    private Seeds() {}

    /// @param rounds how many when nothing else is asked for
    static LongStream of(int rounds) {
        Long fixed = Long.getLong("kv.seed");
        if (fixed != null) {
            return LongStream.of(fixed);
        }
        SplittableRandom random = new SplittableRandom();
        return LongStream.generate(random::nextLong).limit(Integer.getInteger("kv.rounds", rounds));
    }
}
