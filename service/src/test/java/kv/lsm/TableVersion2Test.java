package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
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
    }

    /// Of the first bytes of the buffer that the tests of xxHash and of OpenSSL make, in both kinds of memory:
    /// the shortest and longest keys of each way to compute it.
    @Test
    void theHashIsXxh3WhateverTheKeysLength() {
        byte[] buffer = new byte[2_367];
        long generator = 2_654_435_761L;
        for (int i = 0; i < buffer.length; i++) {
            buffer[i] = (byte) (generator >>> 56);
            generator *= 0x9E3779B185EBCA8DL;
        }
        Map<Integer, Long> hashes = Map.ofEntries(
                Map.entry(1, 0xC44BDFF4074EECDBL),
                Map.entry(3, 0x54247382A8D6B94DL),
                Map.entry(4, 0xE5DC74BC51848A51L),
                Map.entry(8, 0x24CCC9ACAA9F65E4L),
                Map.entry(9, 0x14D5001C15DD3F2BL),
                Map.entry(16, 0x981B17D36C7498C9L),
                Map.entry(17, 0x796F5ACD3A60F862L),
                Map.entry(32, 0x9FEADDBDBF57EED3L),
                Map.entry(33, 0xABFB2D081B400A10L),
                Map.entry(64, 0x9CB48487720EC49DL),
                Map.entry(65, 0xFD81AAC4BEBC3883L),
                Map.entry(96, 0x935A769A7F94776FL),
                Map.entry(97, 0xCA4CA268FD3C3A6CL),
                Map.entry(128, 0xFCFF24126754D861L),
                Map.entry(129, 0x98F1B0A679A2CA29L),
                Map.entry(144, 0xC440D47E5F03FE58L),
                Map.entry(195, 0xCD94217EE362EC3AL),
                Map.entry(240, 0x81C3C2B67F568CCFL),
                Map.entry(241, 0xC5A639ECD2030E5EL),
                Map.entry(512, 0x617E49599013CB6BL),
                Map.entry(1_024, 0xDD85C9B5C1109C5CL),
                Map.entry(1_025, 0xD870C0FA13211C6AL),
                Map.entry(2_048, 0xDD59E2C3A5F038E0L),
                Map.entry(2_367, 0xCB37AEB9E5D361EDL));
        hashes.forEach((length, hash) -> {
            byte[] key = Arrays.copyOf(buffer, length);
            assertThat(Keys.hash(key)).as("%d bytes", length).isEqualTo(hash);
            assertThat(Keys.hash(Records.nativeCopy(key), length))
                    .as("%d bytes", length)
                    .isEqualTo(hash);
        });
    }

    @Test
    void nativeKeysHaveTheHashOfKeysInArrays() {
        SplittableRandom random = new SplittableRandom(1);
        for (int length = 0; length <= 600; length++) {
            byte[] key = new byte[length];
            random.nextBytes(key);
            assertThat(Keys.hash(Records.nativeCopy(key), length))
                    .as("%d bytes", length)
                    .isEqualTo(Keys.hash(key));
        }
    }
}
