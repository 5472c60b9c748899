package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class CompactionRateTest {
    private long now = 1_000_000_000;
    private long slept;
    private boolean behind;

    private CompactionRate rate(long bytesPerSecond) {
        return new CompactionRate(bytesPerSecond, () -> behind, () -> now, nanos -> {
            slept += nanos;
            now += nanos;
        });
    }

    private void spend(CompactionRate rate, int megabytes) {
        for (int i = 0; i < megabytes * 1_000; i++) {
            rate.spend(1_000, () -> false);
        }
    }

    @Test
    void tenMegabytesAtTwoPerSecondTakeFiveSeconds() {
        spend(rate(2_000_000), 10);
        assertThat(slept / 1e9).isBetween(4.9, 5.1);
    }

    @Test
    void timeThatMergingTookItselfIsNotSleptAgain() {
        CompactionRate rate = rate(2_000_000);
        for (int i = 0; i < 10_000; i++) {
            now += 250_000; // half of what a kilobyte may take
            rate.spend(1_000, () -> false);
        }
        assertThat(slept / 1e9).isBetween(2.4, 2.6);
    }

    @Test
    void timeWithoutCompactionsIsNoCreditForABurst() {
        CompactionRate rate = rate(2_000_000);
        now += 60_000_000_000L;
        spend(rate, 10);
        assertThat(slept / 1e9).isBetween(4.9, 5.1);
    }

    @Test
    void thereIsNoLimitByDefaultNorWhileCompactionIsBehind() {
        spend(rate(0), 10);
        behind = true;
        spend(rate(2_000_000), 10);
        assertThat(slept).isZero();
    }

    @Test
    void aStopEndsTheSleep() {
        rate(1_000).spend(10_000_000, () -> slept >= 20_000_000);
        assertThat(slept / 1e6).isBetween(19.0, 31.0);
    }
}
