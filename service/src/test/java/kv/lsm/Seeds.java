package kv.lsm;

import java.util.SplittableRandom;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;

/// Seeds of random tests: fresh ones each run, drawn from one master seed that is printed at the beginning.
/// `-Dkv.master=N` draws the same ones again, `-Dkv.seed=N` is one of them alone, `-Dkv.rounds=N` more of them.
final class Seeds {
    private static final long MASTER = Long.getLong("kv.master", new SplittableRandom().nextLong());

    static {
        System.out.println("random tests: -Dkv.master=" + MASTER);
    }

    private Seeds() {}

    interface Body {
        void run(long seed) throws Throwable;
    }

    /// One test for each seed. One that fails says its seed: the reports keep only its number.
    ///
    /// @param rounds how many when nothing else is asked for
    static Stream<DynamicTest> tests(int rounds, Body body) {
        return of(rounds)
                .mapToObj(seed -> DynamicTest.dynamicTest("-Dkv.seed=" + seed, () -> {
                    try {
                        body.run(seed);
                    } catch (Throwable e) {
                        System.err.println("failed with -Dkv.seed=" + seed + ": " + e);
                        throw e;
                    }
                }));
    }

    /// @param rounds how many when nothing else is asked for
    static LongStream of(int rounds) {
        Long fixed = Long.getLong("kv.seed");
        if (fixed != null) {
            return LongStream.of(fixed);
        }
        SplittableRandom random = new SplittableRandom(MASTER);
        return LongStream.generate(random::nextLong).limit(Integer.getInteger("kv.rounds", rounds));
    }
}
