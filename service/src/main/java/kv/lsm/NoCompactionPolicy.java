package kv.lsm;

import java.util.Optional;

/// [CompactionPolicyKind#NONE].
record NoCompactionPolicy() implements CompactionPolicy {
    @Override
    public Optional<CompactionChoice> choose(Version version) {
        return Optional.empty();
    }
}
