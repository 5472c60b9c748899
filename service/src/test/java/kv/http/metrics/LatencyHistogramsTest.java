package kv.http.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class LatencyHistogramsTest {
    @Test
    void aBucketHoldsItsUpperBoundAndNothingAboveIt() {
        for (int bucket = 0; bucket < LatencyBuckets.COUNT - 1; bucket++) {
            long bound = LatencyBuckets.upperBoundNanos(bucket);
            assertThat(LatencyBuckets.of(bound)).as("bucket of %d ns", bound).isEqualTo(bucket);
            assertThat(LatencyBuckets.of(bound + 1))
                    .as("bucket of %d ns", bound + 1)
                    .isEqualTo(bucket + 1);
        }
        assertThat(LatencyBuckets.upperBoundNanos(0)).isEqualTo(1024);
        assertThat(LatencyBuckets.upperBoundNanos(LatencyBuckets.COUNT - 2)).isBetween(8_000_000_000L, 9_000_000_000L);
        assertThat(LatencyBuckets.of(0)).isZero();
        assertThat(LatencyBuckets.of(-5)).isZero();
        assertThat(LatencyBuckets.of(Long.MAX_VALUE)).isEqualTo(LatencyBuckets.COUNT - 1);
    }

    @Test
    void noBucketIsWiderThanAQuarterOfWhereItBegins() {
        for (int bucket = 1; bucket < LatencyBuckets.COUNT - 1; bucket++) {
            double ratio = (double) LatencyBuckets.upperBoundNanos(bucket) / LatencyBuckets.upperBoundNanos(bucket - 1);
            assertThat(ratio).isBetween(1.1, 1.2501);
        }
    }

    @Test
    void everyLatencyOfEveryThreadIsCountedOnceInItsSeries() throws InterruptedException {
        LatencyHistograms histograms = new LatencyHistograms(3);
        List<Thread> threads = new ArrayList<>();
        int threadCount = 40;
        int each = 5_000;
        for (int t = 0; t < threadCount; t++) {
            SplittableRandom random = new SplittableRandom(t);
            Runnable work = () -> {
                for (int i = 0; i < each; i++) {
                    histograms.record(i % 2, 1 + random.nextInt(1_000_000));
                }
            };
            threads.add(
                    t % 2 == 0
                            ? Thread.ofPlatform().start(work)
                            : Thread.ofVirtual().start(work));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(histograms.snapshot(0).count()).isEqualTo(threadCount * each / 2);
        assertThat(histograms.snapshot(1).count()).isEqualTo(threadCount * each / 2);
        assertThat(histograms.snapshot(2)).isNull();
        double mean = (double) histograms.snapshot(0).sumNanos()
                / histograms.snapshot(0).count();
        assertThat(mean).isBetween(490_000.0, 510_000.0);
    }
}
