package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import kv.lsm.memory.Keys;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A store that the last release with table version 2 wrote: `key-0` to `key-39` with `value N`, `key-7`
/// deleted.
class TableVersion2Test {
    private static final String TABLE = "000004.table";

    @TempDir
    Path directory;

    @BeforeEach
    void copyStore() throws Exception {
        for (String name : new String[] {FileNames.MANIFEST, TABLE}) {
            try (var in = Objects.requireNonNull(getClass().getResourceAsStream("/table-version-2/" + name))) {
                Files.copy(in, directory.resolve(name));
            }
        }
    }

    private static void check(Store store) {
        for (int i = 0; i < 40; i++) {
            byte[] wanted = i == 7 ? null : Records.bytes("value " + i);
            assertThat(store.get(Records.bytes("key-" + i))).as("key-%d", i).isEqualTo(wanted);
        }
        byte[][] keys = {Records.bytes("key-1"), Records.bytes("absent")};
        store.prefetchGets(keys, keys.length);
        assertThat(store.get(Records.bytes("absent"))).isNull();
    }

    @ParameterizedTest
    @EnumSource
    void aTableWithTheOldHashIsReadBesideNewOnes(ReadMode read) {
        StoreOptions options = StoreOptions.at(directory).toBuilder()
                .read(read)
                .memtableBytes(16 << 10)
                .wal(WalMode.NONE)
                .compaction(CompactionPolicyKind.NONE)
                .build();
        for (int opening = 0; opening < 2; opening++) {
            try (Store store = LsmStore.open(options)) {
                check(store);
                store.put(Records.bytes("new"), Records.bytes("value"));
                assertThat(store.get(Records.bytes("new"))).isEqualTo(Records.bytes("value"));
            }
        }
        assertThat(directory.resolve(TABLE)).exists();
    }

    @Test
    void compactionRewritesItWithTheNewHash() {
        try (Store store = LsmStore.open(StoreOptions.at(directory))) {
            store.put(Records.bytes("key-1"), Records.bytes("value 1"));
            store.administration().compact(() -> false);
            check(store);
        }
        assertThat(directory.resolve(TABLE)).doesNotExist();
    }

    /// The reference implementation's values, so that no release of the library changes the format unnoticed.
    @Test
    void theHashIsXxh3() {
        assertThat(Keys.hash(new byte[0])).isEqualTo(0x2D06800538D394C2L);
        assertThat(Keys.hash(Records.bytes("a"))).isEqualTo(0xE6C632B61E964E1FL);
        assertThat(Keys.hash(Records.bytes("abc"))).isEqualTo(0x78AF5F94892F3950L);
        byte[] sixteen = Records.bytes("0123456789abcdef");
        assertThat(Keys.hash(Records.nativeCopy(sixteen), 16)).isEqualTo(Keys.hash(sixteen));
    }
}
