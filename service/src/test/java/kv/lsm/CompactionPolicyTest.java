package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class CompactionPolicyTest {
    private static final long MB = 1 << 20;

    private long nextNumber = 1;

    private TableMetadata table(int level, long run, String smallest, String largest, long bytes) {
        return new TableMetadata(
                nextNumber++, level, run, bytes, 1, 0, Records.bytes(smallest), Records.bytes(largest));
    }

    private static List<Long> numbers(CompactionChoice choice) {
        return choice.tables().stream().map(TableMetadata::number).toList();
    }

    private final LeveledPolicy leveled = new LeveledPolicy(2, 6, 10 * MB, 10);
    private final TieredPolicy tiered = new TieredPolicy(3, 8, 12);

    @Test
    void anEmptyStoreNeedsNothing() {
        assertThat(leveled.choose(Version.EMPTY)).isEmpty();
        assertThat(tiered.choose(Version.EMPTY)).isEmpty();
        assertThat(new NoCompactionPolicy().choose(Version.EMPTY)).isEmpty();
    }

    @Test
    void leveledMergesAllOfLevelZeroWithWhatItOverlapsBelow() {
        Version version = Version.of(List.of(
                table(0, 7, "c", "d", MB),
                table(0, 9, "b", "c", MB),
                table(1, 0, "a", "a", MB),
                table(1, 0, "b", "bb", MB),
                table(1, 0, "d", "e", MB),
                table(1, 0, "f", "g", MB)));
        CompactionChoice choice = leveled.choose(version).orElseThrow();
        assertThat(numbers(choice)).containsExactly(2L, 1L, 4L, 5L);
        assertThat(choice.outputLevel()).isEqualTo(1);
        assertThat(choice.cause()).isEqualTo("level0_runs");
        assertThat(choice.isMove()).isFalse();
    }

    @Test
    void leveledTakesTheTableThatOverlapsLeastFromALevelOverItsTarget() {
        Version version = Version.of(List.of(
                table(1, 0, "a", "c", 6 * MB),
                table(1, 0, "d", "f", 6 * MB),
                table(2, 0, "a", "b", 5 * MB),
                table(2, 0, "e", "e", 1 * MB)));
        CompactionChoice choice = leveled.choose(version).orElseThrow();
        assertThat(numbers(choice)).containsExactly(2L, 4L);
        assertThat(choice.outputLevel()).isEqualTo(2);
        assertThat(choice.cause()).isEqualTo("level_bytes");
    }

    @Test
    void leveledMovesATableThatOverlapsNothing() {
        Version version = Version.of(List.of(table(1, 0, "a", "c", 6 * MB), table(1, 0, "d", "f", 6 * MB)));
        assertThat(leveled.choose(version).orElseThrow().isMove()).isTrue();
    }

    @Test
    void leveledLeavesALevelAtItsTargetAlone() {
        assertThat(leveled.choose(Version.of(List.of(table(1, 0, "a", "c", 10 * MB)))))
                .isEmpty();
    }

    @Test
    void leveledLetsLevelZeroWaitForALevelThatIsFurtherOverItsTargetUntilWritersWouldSoonBeStopped() {
        List<TableMetadata> tables =
                new ArrayList<>(List.of(table(1, 0, "a", "c", 90 * MB), table(2, 0, "a", "b", 900 * MB)));
        for (int run = 1; run < 6; run++) {
            tables.add(table(0, run, "a", "z", MB));
        }
        assertThat(leveled.choose(Version.of(tables)).orElseThrow().cause()).isEqualTo("level_bytes");
        tables.add(table(0, 6, "a", "z", MB));
        assertThat(leveled.choose(Version.of(tables)).orElseThrow().cause()).isEqualTo("level0_runs");
    }

    @Test
    void theNextCompactionFreesStoppedWritersUnlessLevel1IsTooLargeToMergeInto() {
        for (CompactionPolicyKind kind : List.of(CompactionPolicyKind.LEVELED, CompactionPolicyKind.TIERED)) {
            StoreOptions options = StoreOptions.at(Path.of("/store")).toBuilder()
                    .compaction(kind)
                    .build();
            List<TableMetadata> tables = new ArrayList<>();
            for (int i = 0; i < options.level0Stop(); i++) {
                // the oldest are large and alike, the newest are not alike
                long bytes = i < 24 ? MB << i % 6 : 4_000 * MB;
                tables.add(table(0, 1_000 - i, "a", "z", bytes));
            }
            long level0Bytes = tables.stream().mapToLong(TableMetadata::bytes).sum();
            tables.add(table(1, 0, "a", "z", options.levelMultiplier() * level0Bytes));
            for (int level = 2; level < LeveledPolicy.LEVEL_MAX; level++) {
                tables.add(table(level, 0, "a", "z", 1L << 60));
            }
            CompactionChoice choice =
                    CompactionPolicy.of(options).choose(Version.of(tables)).orElseThrow();
            assertThat(choice.inputs().getFirst().number())
                    .as("%s: the newest run is merged", kind)
                    .isEqualTo(1_000);
            long merged =
                    choice.inputs().stream().filter(run -> run.level() == 0).count();
            assertThat(merged)
                    .as("%s: runs merged, so level 0 is no longer at its stop", kind)
                    .isGreaterThan(1);
        }
    }

    @Test
    void leveledTakesALevelThatIsTooLargeToMergeIntoBeforeStoppedWriters() {
        List<TableMetadata> tables = new ArrayList<>();
        for (int run = 1; run <= 8; run++) {
            tables.add(table(0, run, "a", "z", 20 * MB));
        }
        TableMetadata atItsBound = table(1, 0, "a", "z", 1_600 * MB);
        assertThat(numbers(leveled.choose(with(tables, atItsBound)).orElseThrow()))
                .contains(1L, atItsBound.number());
        TableMetadata over = table(1, 0, "a", "z", 1_601 * MB);
        assertThat(numbers(leveled.choose(with(tables, over)).orElseThrow())).containsExactly(over.number());
        TableMetadata below = table(2, 0, "a", "z", 16_011 * MB);
        CompactionChoice choice = leveled.choose(with(tables, over, below)).orElseThrow();
        assertThat(numbers(choice))
                .as("level 2 is too large to merge level 1 into it")
                .containsExactly(below.number());
        List<TableMetadata> small = new ArrayList<>();
        for (int run = 1; run <= 8; run++) {
            small.add(table(0, run, "a", "z", 1));
        }
        assertThat(leveled.choose(with(small, table(1, 0, "a", "z", 100 * MB)))
                        .orElseThrow()
                        .cause())
                .as("small runs are merged into a level that is not ten times over its target")
                .isEqualTo("level0_runs");
    }

    private static Version with(List<TableMetadata> tables, TableMetadata... more) {
        List<TableMetadata> all = new ArrayList<>(tables);
        all.addAll(List.of(more));
        return Version.of(all);
    }

    @Test
    void tieredMergesNeighboursOfLikeSizeTheNewestFirst() {
        Version version = Version.of(List.of(
                table(0, 9, "a", "z", MB),
                table(0, 8, "a", "z", MB),
                table(0, 7, "a", "z", MB + MB / 2),
                table(0, 6, "a", "z", 50 * MB),
                table(0, 5, "a", "z", 50 * MB)));
        CompactionChoice choice = tiered.choose(version).orElseThrow();
        assertThat(numbers(choice)).containsExactly(1L, 2L, 3L);
        assertThat(choice.outputLevel()).isZero();
        assertThat(choice.outputRun()).as("takes the place of its inputs").isEqualTo(9);
        assertThat(choice.cause()).isEqualTo("like_sizes");
    }

    @Test
    void tieredWaitsForEnoughRunsOfLikeSize() {
        assertThat(tiered.choose(Version.of(
                        List.of(table(0, 9, "a", "z", MB), table(0, 8, "a", "z", MB), table(0, 7, "a", "z", 9 * MB)))))
                .isEmpty();
    }

    @Test
    void tieredMergesTheNewestWhenThereAreTooManyRuns() {
        List<TableMetadata> tables = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            tables.add(table(0, 100 - i, "a", "z", MB << (2 * i)));
        }
        CompactionChoice choice = tiered.choose(Version.of(tables)).orElseThrow();
        assertThat(numbers(choice)).containsExactly(1L, 2L, 3L);
        assertThat(choice.cause()).isEqualTo("many_runs");
    }

    @Test
    void tieredCountsTheLevelsOfAStoreThatWasLeveled() {
        Version version = Version.of(List.of(
                table(0, 9, "a", "z", 2 * MB),
                table(1, 0, "a", "m", MB),
                table(1, 0, "n", "z", MB),
                table(2, 0, "a", "z", 2 * MB)));
        CompactionChoice choice = tiered.choose(version).orElseThrow();
        assertThat(numbers(choice)).containsExactly(1L, 2L, 3L, 4L);
        assertThat(choice.outputLevel()).isEqualTo(2);
        assertThat(choice.outputRun()).isZero();
    }

    @Test
    void tombstonesStayWhileAnOlderTableMayHoldTheirKey() {
        TableMetadata newest = table(0, 5, "a", "z", MB);
        Version version = Version.of(
                List.of(newest, table(1, 0, "a", "d", MB), table(2, 0, "f", "h", MB), table(3, 0, "k", "k", MB)));
        CompactionChoice choice = new CompactionChoice(
                List.of(version.runs().get(0), version.runs().get(1)), 1, 0, "level0_runs");
        Tombstones tombstones = new Tombstones(version, choice);
        for (String kept : List.of("f", "g", "h", "k")) {
            Tombstones fresh = new Tombstones(version, choice);
            assertThat(fresh.isUseless(Records.nativeCopy(Records.bytes(kept)), 1))
                    .as(kept)
                    .isFalse();
        }
        for (String dropped : List.of("a", "e", "i", "l")) {
            assertThat(tombstones.isUseless(Records.nativeCopy(Records.bytes(dropped)), 1))
                    .as(dropped)
                    .isTrue();
        }
    }

    @Test
    void anEditThatDoesNotFitIsRefused() {
        Version version = Version.of(List.of(table(1, 0, "a", "c", MB)));
        assertThat(catchThrowable(() -> version.apply(new VersionEdit(0, false, 9, List.of(77L), List.of()))))
                .hasMessageContaining("not there");
        assertThat(catchThrowable(() ->
                        version.apply(new VersionEdit(0, false, 9, List.of(), List.of(table(1, 0, "b", "d", MB))))))
                .hasMessageContaining("overlap");
    }
}
