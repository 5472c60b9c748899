package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/// A thread keeps its room for as long as it lives, so what is left in it lives as long.
class PrefetchRoomTest {
    @Test
    void nothingOfARoundIsKeptBehindIt() {
        PrefetchRoom room = new PrefetchRoom();
        for (int i = 0; i < 16; i++) {
            room.inMemtable()[i] = new byte[1];
            room.others()[i] = new byte[1];
        }
        room.letGo(16);
        assertThat((Object[]) room.inMemtable()).containsOnlyNulls();
        assertThat((Object[]) room.others()).containsOnlyNulls();
        assertThat(room.tables()).containsOnlyNulls();
    }

    @Test
    void thereIsRoomForAsManyKeysAsAreAskedFor() {
        PrefetchRoom room = new PrefetchRoom();
        long[] before = room.hashes();
        room.makeRoomFor(before.length);
        assertThat(room.hashes()).isSameAs(before);
        int keys = before.length + 1;
        room.makeRoomFor(keys);
        assertThat(room.hashes().length).isEqualTo(keys);
        assertThat(room.inMemtable().length).isEqualTo(keys);
        assertThat(room.others().length).isEqualTo(keys);
        assertThat(room.tables().length).isEqualTo(keys);
        assertThat(room.pointers().length).isEqualTo(keys);
        assertThat(room.depths().length).isEqualTo(keys);
    }
}
