package kv.lsm;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BooleanSupplier;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Mapped;
import kv.lsm.table.SSTable;

/// Carries out one [CompactionChoice]: merges the inputs into new tables. Reads and writes go on meanwhile.
final class CompactionJob {
    /// How many bytes of entries are merged between two looks at whether to stop: a thousand short entries, or one
    /// long one.
    private static final long BYTES_BETWEEN_CHECKS = 128 << 10;

    private final StoreFiles files;
    private final CompactionInputs inputs;
    private final CompactionChoice choice;
    private final TimeSlices slices;
    private final CompactionRate rate;

    /// @param inputs closed by the caller
    /// @param slices of the thread that runs it
    /// @param rate of all compactions
    CompactionJob(StoreFiles files, CompactionInputs inputs, TimeSlices slices, CompactionRate rate) {
        this.files = files;
        this.inputs = inputs;
        this.choice = inputs.choice();
        this.slices = slices;
        this.rate = rate;
    }

    /// The new tables, which the caller releases, or null when told to stop.
    List<NewTable> run(BooleanSupplier stop) throws IOException {
        Tombstones tombstones = new Tombstones(inputs.version(), choice);
        try (EntryIterator entries = merged();
                RunWriter writer = RunWriter.ofMerge(files, choice.outputLevel(), choice.outputRun(), slices)) {
            for (long untilCheck = 0; entries.next(); ) {
                if (untilCheck <= 0) {
                    if (stop.getAsBoolean()) {
                        return null;
                    }
                    untilCheck = BYTES_BETWEEN_CHECKS;
                }
                long bytes = entries.keyLength() + Math.max(entries.valueLength(), 0L);
                untilCheck -= bytes;
                rate.spend(bytes, stop);
                boolean dead = entries.valueLength() == EntryIterator.TOMBSTONE
                        && tombstones.isUseless(entries.keyAddress(), entries.keyLength());
                if (dead) {
                    slices.step();
                } else {
                    writer.add(entries);
                }
            }
            Mapped.throwPending();
            return writer.finish();
        }
    }

    private EntryIterator merged() {
        List<EntryIterator> sources = new ArrayList<>();
        for (Run input : choice.inputs()) {
            SSTable[] tables = input.tables().stream()
                    .map(table -> inputs.table(table.number()))
                    .toArray(SSTable[]::new);
            sources.add(RunIterator.ofMerge(Arrays.asList(tables)));
        }
        return new MergingIterator(sources);
    }
}
