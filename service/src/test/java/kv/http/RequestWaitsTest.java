package kv.http;

import static org.assertj.core.api.Assertions.assertThat;

import kv.lsm.Waits;
import kv.lsm.disk.MajorFaults;
import org.junit.jupiter.api.Test;

class RequestWaitsTest {
    private final RequestWaits waits = new RequestWaits();

    private void served(MajorFaults beforeOrNull, MajorFaults afterOrNull) {
        waits.isServed(0, 1, Waits.ofThread(), beforeOrNull);
        waits.wasServed(Waits.ofThread(), afterOrNull);
    }

    @Test
    void pageFaultsOfThePrefetchAndOfEachThreadThatServesARequestAddUp() {
        waits.prefetched(new MajorFaults(1, 10), new MajorFaults(1, 12));
        served(new MajorFaults(1, 20), new MajorFaults(1, 23));
        served(new MajorFaults(2, 500), new MajorFaults(2, 504));
        assertThat(waits.faults()).isEqualTo(2 + 3 + 4);
        waits.clear();
        assertThat(waits.faults()).isZero();
    }

    @Test
    void whereOnePartOfThemIsNotKnownTheSumIsNotEither() {
        served(new MajorFaults(1, 20), new MajorFaults(1, 23));
        served(new MajorFaults(1, 30), new MajorFaults(2, 900)); // a virtual thread that was moved
        served(new MajorFaults(1, 40), new MajorFaults(1, 43));
        assertThat(waits.faults()).isEqualTo(RequestWaits.UNKNOWN);
        waits.clear();
        served(null, null);
        assertThat(waits.faults()).isEqualTo(RequestWaits.UNKNOWN);
    }
}
