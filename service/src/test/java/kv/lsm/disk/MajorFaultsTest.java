package kv.lsm.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What `getrusage` tells, where there is one.
class MajorFaultsTest {
    private static final int PAGES = 20;

    private static long taken(Runnable work) {
        MajorFaults before = MajorFaults.ofThreadOrNull();
        work.run();
        MajorFaults after = MajorFaults.ofThreadOrNull();
        assertThat(after.thread()).isEqualTo(before.thread());
        return after.count() - before.count();
    }

    @Test
    void pagesOnTheDiskAreCountedWhenTheyAreReadAndNotAgain(@TempDir Path directory) throws Exception {
        assumeTrue(MajorFaults.ofThreadOrNull() != null, "nobody can tell here");
        try (ColdPages cold = new ColdPages(directory, PAGES)) {
            assertThat(taken(cold::read)).isGreaterThanOrEqualTo(PAGES);
            assertThat(taken(cold::read)).isLessThan(PAGES);
        }
    }

    @Test
    void whatAnotherThreadWaitsForIsNotCounted(@TempDir Path directory) throws Exception {
        assumeTrue(MajorFaults.ofThreadOrNull() != null, "nobody can tell here");
        try (ColdPages cold = new ColdPages(directory, PAGES);
                var other = Executors.newSingleThreadExecutor()) {
            long[] ofOther = new long[1];
            long ofThis = taken(() -> ofOther[0] = CompletableFuture.supplyAsync(() -> taken(cold::read), other)
                    .join());
            assertThat(ofOther[0]).isGreaterThanOrEqualTo(PAGES);
            assertThat(ofThis).isLessThan(PAGES);
        }
    }

    @Test
    void twoThreadsOfTheSystemAreToldApart() {
        assumeTrue(MajorFaults.ofThreadOrNull() != null, "nobody can tell here");
        MajorFaults other = CompletableFuture.supplyAsync(
                        MajorFaults::ofThreadOrNull, task -> Thread.ofPlatform().start(task))
                .join();
        assertThat(other.thread()).isNotEqualTo(MajorFaults.ofThreadOrNull().thread());
    }
}
