package kv.http;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/// Since when a connection waits for its client, by a clock that the test sets.
class TimeoutsTest {
    private long nowMillis = 1_000;
    private final Timeouts timeouts = new Timeouts(() -> nowMillis);

    private void at(long millis) {
        nowMillis = millis;
    }

    private boolean waits() {
        return timeouts.waitsForClientSinceMillis() != Long.MAX_VALUE;
    }

    @Test
    void betweenRequestsItDoesNotWait() {
        assertThat(waits()).isFalse();
        timeouts.requestIsIncomplete();
        timeouts.requestIsComplete();
        timeouts.answerIsIncomplete();
        timeouts.answerIsComplete();
        assertThat(waits()).isFalse();
    }

    @Test
    void anUploadThatGoesOnIsWaitedForSinceItsLastStrideHoweverLongItTakes() {
        timeouts.requestIsIncomplete();
        for (int i = 1; i <= 100; i++) {
            at(1_000 + i * 1_000);
            timeouts.clientMoved(Timeouts.STRIDE_BYTES);
            timeouts.requestIsIncomplete();
            assertThat(timeouts.waitsForClientSinceMillis()).isEqualTo(nowMillis);
        }
    }

    @Test
    void dropsOfAnUploadAreNoProgressUntilTogetherTheyAreAStride() {
        timeouts.requestIsIncomplete();
        for (int i = 1; i < 100; i++) {
            at(1_000 + i * 1_000);
            timeouts.clientMoved(1);
            timeouts.moved();
            assertThat(timeouts.waitsForClientSinceMillis()).isEqualTo(1_000);
        }
        timeouts.clientMoved(Timeouts.STRIDE_BYTES - 99);
        assertThat(timeouts.waitsForClientSinceMillis()).isEqualTo(nowMillis);
    }

    @Test
    void anAnswerThatIsTakenSlowlyIsWaitedForSinceItsLastStride() {
        timeouts.answerIsIncomplete();
        at(4_000);
        assertThat(timeouts.waitsForClientSinceMillis()).isEqualTo(1_000);
        timeouts.clientMoved(1 << 20);
        timeouts.answerIsIncomplete();
        assertThat(timeouts.waitsForClientSinceMillis()).isEqualTo(4_000);
        at(9_000);
        timeouts.clientMoved(1);
        timeouts.moved();
        assertThat(timeouts.waitsForClientSinceMillis()).isEqualTo(4_000);
    }

    @Test
    void anAnswerIsOverdueByTheTimeOfItsLastMove() {
        HttpOptions options = HttpOptions.onFreePort().withAnswerTimeout(500);
        assertThat(timeouts.isAnswerOverdue(options)).as("none is begun").isFalse();
        timeouts.answerIsIncomplete();
        at(1_500);
        timeouts.moved();
        assertThat(timeouts.isAnswerOverdue(options)).isFalse();
        at(1_501);
        assertThat(timeouts.isAnswerOverdue(options)).isFalse();
        timeouts.moved();
        assertThat(timeouts.isAnswerOverdue(options)).isTrue();
        timeouts.answerIsComplete();
        assertThat(timeouts.isAnswerOverdue(options)).isFalse();
    }

    @Test
    void whatIsReadOfTheNextRequestAfterAnAnswerCountsFromItsEnd() {
        timeouts.requestIsIncomplete();
        at(2_000);
        timeouts.answerIsIncomplete();
        at(60_000);
        timeouts.answerIsComplete();
        assertThat(timeouts.waitsForClientSinceMillis()).isEqualTo(60_000);
    }

    @Test
    void aConnectionThatIsBeingReadOrWrittenDoesNotWait() {
        timeouts.requestIsIncomplete();
        timeouts.isMoving();
        assertThat(waits()).isFalse();
        timeouts.moved();
        assertThat(waits()).isTrue();
    }

    /// It would get a reset instead of the answer that its body was refused.
    @Test
    void aClientThatSendsOnBehindTheLastAnswerHasAsMuchTimeAsARequest() {
        HttpOptions options = HttpOptions.onFreePort();
        timeouts.lingeringBegins();
        at(1_000 + Timeouts.LINGER_MILLIS + 1);
        assertThat(timeouts.overdue(nowMillis, options)).isEqualTo(Timeouts.Overdue.CONNECTION);
        for (int millis = 0; millis < options.requestTimeoutMillis(); millis += 1_000) {
            at(2_000 + millis);
            timeouts.isMoving();
            assertThat(timeouts.overdue(nowMillis, options)).isEqualTo(Timeouts.Overdue.NOTHING);
            timeouts.moved();
            assertThat(timeouts.overdue(nowMillis, options)).isEqualTo(Timeouts.Overdue.NOTHING);
        }
        at(1_000 + options.requestTimeoutMillis() + 1);
        timeouts.moved();
        assertThat(timeouts.overdue(nowMillis, options)).isEqualTo(Timeouts.Overdue.CONNECTION);
    }
}
