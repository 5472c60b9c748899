package kv.http;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class PausesTest {
    private final Pauses pauses = new Pauses();

    @Test
    void aThreadThatWakesInTimeJudgesAtOnce() {
        assertThat(pauses.mayJudge(1_000, 5, 1_005)).isTrue();
        assertThat(pauses.mayJudge(1_005, 5, 1_009 + Pauses.LATE_MILLIS_MIN))
                .as("a little late")
                .isTrue();
        assertThat(pauses.mayJudge(2_000, 200, 2_003))
                .as("woken before its time")
                .isTrue();
    }

    @Test
    void afterAPauseClientsGetTheTimeThatWasLost() {
        assertThat(pauses.mayJudge(1_000, 5, 1_705)).isFalse();
        assertThat(pauses.mayJudge(1_705, 5, 1_710)).isFalse();
        assertThat(pauses.mayJudge(2_399, 5, 2_404)).isFalse();
        assertThat(pauses.mayJudge(2_404, 5, 2_409)).isTrue();
    }

    @Test
    void afterALongPauseTheyGetNoMoreThanTheTimeAfterWhichSilenceIsWaste() {
        assertThat(pauses.mayJudge(1_000, 5, 61_005)).isFalse();
        assertThat(pauses.mayJudge(61_005, 5, 61_010)).isFalse();
        assertThat(pauses.mayJudge(64_000, 5, 61_005 + MemoryReclaimer.WASTED_MILLIS_MIN))
                .isTrue();
    }
}
