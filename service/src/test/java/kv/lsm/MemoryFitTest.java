package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import kv.lsm.MemoryFit.State;
import kv.lsm.disk.FileMemory;
import kv.lsm.disk.LinuxFileMemory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MemoryFitTest {
    private static final long MEMORY = 1_000;

    private long available = MEMORY;
    private long faults;
    private long coldGets;
    private final MemoryFit fit = new MemoryFit(0, new FileMemory() {
        @Override
        public long availableBytes() {
            return available;
        }

        @Override
        public long majorFaults() {
            return faults;
        }
    });

    private State look(long tableBytes) {
        fit.look(tableBytes, 0, coldGets);
        return fit.state();
    }

    private void lookUntilWarm() {
        for (int i = 0; i < 6; i++) {
            look(500);
        }
    }

    @Test
    void anEmptyStoreFits() {
        assertThat(look(0)).isEqualTo(State.FITS);
    }

    @Test
    void tablesThatAStoreWroteItselfAreInMemory() {
        look(0);
        assertThat(look(500)).isEqualTo(State.FITS);
    }

    @Test
    void tablesThatWereThereBeforeAreColdUntilNoFaultsAreSeenForSomeTime() {
        assertThat(look(500)).isEqualTo(State.COLD);
        for (int i = 0; i < 20; i++) {
            faults += 100;
            assertThat(look(500)).isEqualTo(State.COLD);
        }
        for (int i = 0; i < 4; i++) {
            assertThat(look(500)).isEqualTo(State.COLD);
        }
        assertThat(look(500)).isEqualTo(State.FITS);
    }

    @Test
    void getsThatMissPagesBeforeTheyFaultCountAsWell() {
        lookUntilWarm();
        assertThat(fit.isWorthWarming()).isFalse();
        coldGets += 100;
        assertThat(look(500)).isEqualTo(State.COLD);
        assertThat(fit.isWorthWarming()).isTrue();
        assertThat(look(500)).isEqualTo(State.COLD);
        assertThat(fit.isWorthWarming()).isFalse();
    }

    @Test
    void logsTakeMemoryThatTablesCannotHave() {
        lookUntilWarm();
        fit.look(500, MEMORY - 500, 0);
        assertThat(fit.state()).isEqualTo(State.FITS);
        fit.look(500, MEMORY - 499, 0);
        assertThat(fit.state()).isEqualTo(State.EXCEEDS);
    }

    @Test
    void aFewFaultsAreTheJvmsOwn() {
        lookUntilWarm();
        faults += 5;
        assertThat(look(500)).isEqualTo(State.FITS);
        faults += 500;
        assertThat(look(500)).isEqualTo(State.COLD);
    }

    @Test
    void tablesThatGrowOverTheMemoryExceedItAtOnce() {
        lookUntilWarm();
        fit.tablesChanged(MEMORY);
        assertThat(fit.state()).isEqualTo(State.FITS);
        fit.tablesChanged(MEMORY + 1);
        assertThat(fit.state()).isEqualTo(State.EXCEEDS);
    }

    @Test
    void atTheLimitTheStateStaysAsItIs() {
        lookUntilWarm();
        assertThat(look(MEMORY + 1)).isEqualTo(State.EXCEEDS);
        assertThat(look(MEMORY - 1)).isEqualTo(State.EXCEEDS);
        assertThat(look(MEMORY * 7 / 10)).isEqualTo(State.FITS);
        assertThat(look(MEMORY - 1)).isEqualTo(State.FITS);
    }

    @Test
    void memoryThatOthersTakeMakesTheSameTablesTooLarge() {
        lookUntilWarm();
        available = 400;
        assertThat(look(500)).isEqualTo(State.EXCEEDS);
    }

    /// As where too many files are open.
    @Test
    void aLookThatCannotBeMadeChangesNothing(@TempDir Path root) throws IOException {
        Path machine = Files.createDirectory(root.resolve("proc")).resolve("meminfo");
        Files.writeString(machine, "MemAvailable: 1 kB\n");
        MemoryFit looking = new MemoryFit(0, new LinuxFileMemory(root));
        looking.look(2_000, 0, 0);
        assertThat(looking.state()).isEqualTo(State.EXCEEDS);
        Files.delete(machine);
        looking.look(2_000, 0, 0);
        assertThat(looking.state()).isEqualTo(State.EXCEEDS);
    }

    @Test
    void aSizeThatWasGivenCountsWhateverTheSystemHas() {
        MemoryFit given = new MemoryFit(100, null);
        given.look(100, 7, 0);
        assertThat(given.state()).isEqualTo(State.FITS);
        given.look(101, 0, 0);
        assertThat(given.state()).isEqualTo(State.EXCEEDS);
    }
}
