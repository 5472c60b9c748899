package kv.lsm;

import java.util.HashSet;
import java.util.OptionalLong;
import java.util.Set;

/// Which tables were brought into memory since they became cold: each comes once, or what does not fit after all
/// would be read for ever. When they have been warm, or too large, in between, what was brought in may be gone.
/// For one thread.
final class WarmedTables {
    private final Set<Long> warmed = new HashSet<>();

    /// The lowest number of an open table that was not brought in yet; it counts as brought in from now on.
    OptionalLong next(Set<Long> open) {
        warmed.retainAll(open);
        OptionalLong next = open.stream()
                .filter(number -> !warmed.contains(number))
                .mapToLong(Long::longValue)
                .min();
        next.ifPresent(warmed::add);
        return next;
    }

    /// To be told of each look at the memory.
    void foundIn(MemoryFit.State state) {
        if (state != MemoryFit.State.COLD) {
            warmed.clear();
        }
    }
}
