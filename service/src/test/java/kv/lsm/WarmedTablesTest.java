package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class WarmedTablesTest {
    private final WarmedTables warmed = new WarmedTables();

    @Test
    void eachTableComesOnceTheOldestFirst() {
        assertThat(warmed.next(Set.of(7L, 3L))).hasValue(3);
        assertThat(warmed.next(Set.of(7L, 3L))).hasValue(7);
        assertThat(warmed.next(Set.of(7L, 3L))).isEmpty();
        warmed.foundIn(MemoryFit.State.COLD);
        assertThat(warmed.next(Set.of(7L, 3L))).isEmpty();
        assertThat(warmed.next(Set.of(7L, 5L))).as("one that a merge has made").hasValue(5);
    }

    @ParameterizedTest
    @EnumSource(
            value = MemoryFit.State.class,
            names = {"FITS", "EXCEEDS"})
    void tablesThatHaveNotBeenColdInBetweenComeAgain(MemoryFit.State between) {
        assertThat(warmed.next(Set.of(3L))).hasValue(3);
        warmed.foundIn(between);
        warmed.foundIn(MemoryFit.State.COLD);
        assertThat(warmed.next(Set.of(3L))).hasValue(3);
    }
}
