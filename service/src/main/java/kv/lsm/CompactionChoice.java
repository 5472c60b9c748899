package kv.lsm;

import java.util.List;

/// What a policy wants merged.
///
/// @param inputs parts of runs, newest first; all of a run's tables, or those of one key range
/// @param outputLevel where the result goes
/// @param outputRun its run number: 0 but in level 0
/// @param cause why, for events: `level0_runs`, `level_bytes`, `like_sizes`, `many_runs`
public record CompactionChoice(List<Run> inputs, int outputLevel, long outputRun, String cause) {
    public CompactionChoice {
        inputs = List.copyOf(inputs);
    }

    List<TableMetadata> tables() {
        return inputs.stream().flatMap(run -> run.tables().stream()).toList();
    }

    /// True when nothing has to be rewritten: one table that goes to a level where it overlaps nothing.
    boolean isMove() {
        return inputs.size() == 1
                && inputs.getFirst().tables().size() == 1
                && inputs.getFirst().level() != outputLevel;
    }
}
