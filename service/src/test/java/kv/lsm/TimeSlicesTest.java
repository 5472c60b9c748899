package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class TimeSlicesTest {
    private static final long STEP_NANOS = 1_000;

    private long now;
    private int timesGivenWay;
    private boolean behind;
    private long othersNanos;
    private final TimeSlices slices = new TimeSlices(() -> behind, () -> now, () -> {
        timesGivenWay++;
        now += othersNanos;
    });

    private void work(int steps) {
        for (int i = 0; i < steps; i++) {
            now += STEP_NANOS;
            slices.step();
        }
    }

    @Test
    void givesWayOnceInATurn() {
        work(90);
        assertThat(timesGivenWay).as("in the first 90 µs").isZero();
        work(42);
        assertThat(timesGivenWay).as("after 132 µs").isEqualTo(1);
        work(1_280);
        assertThat(timesGivenWay)
                .as("after ten slices more, each of 128 µs because the clock is read every 32 steps")
                .isEqualTo(11);
    }

    @Test
    void theTimeOfOthersIsNotPartOfTheNextTurn() {
        othersNanos = 5_000_000;
        work(128);
        assertThat(timesGivenWay).isEqualTo(1);
        work(96);
        assertThat(timesGivenWay).as("96 µs into the second turn").isEqualTo(1);
    }

    @Test
    void workThatIsBehindGoesOnAndGivesWayAgainWhenItIsNot() {
        behind = true;
        work(10_000);
        assertThat(timesGivenWay).isZero();
        behind = false;
        work(256);
        assertThat(timesGivenWay).isEqualTo(2);
    }

    @Test
    void oneLongPieceOfWorkEndsATurnAtOnce() {
        work(1);
        now += 3_000_000;
        slices.checkTime();
        assertThat(timesGivenWay).isEqualTo(1);
        slices.checkTime();
        assertThat(timesGivenWay).as("the next turn has just begun").isEqualTo(1);
    }
}
