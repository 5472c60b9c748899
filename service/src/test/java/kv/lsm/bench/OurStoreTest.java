package kv.lsm.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import kv.lsm.CompactionPolicyKind;
import kv.lsm.StoreOptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

class OurStoreTest {
    @Test
    @Timeout(60)
    void aStoreWithManyRunsThatNobodyWantsToMergeIsAtRest(@TempDir Path directory) throws InterruptedException {
        StoreOptions options = StoreOptions.at(directory).toBuilder()
                .compaction(CompactionPolicyKind.NONE)
                .memtableBytes(1 << 20)
                .build();
        try (OurStore store = new OurStore(options)) {
            Keyspace keys = new Keyspace(60_000);
            for (int key = 0; key < 60_000; key++) {
                store.put(Keyspace.key(key), keys.value(key));
            }
            store.settle();
            assertThat(store.metrics().frozenMemtables()).isZero();
            assertThat(store.metrics().levels().getFirst().runs()).isGreaterThanOrEqualTo(4);
        }
    }
}
