package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.junit.jupiter.api.Test;

class ManifestFormatTest {
    private static final int SECTOR_BYTES = 512;

    /// Wherever the last edit begins and ends, and whichever of its sectors the power loss took.
    @Test
    void anEditOfWhichASectorWasNeverWrittenIsTorn() {
        int cases = 0;
        for (int before = 0; before <= SECTOR_BYTES; before++) {
            ByteBuffer file = file(edit(before), edit(700));
            int last = ManifestFormat.HEADER_BYTES + ManifestFormat.validRecordBytes(file, ManifestFormat.HEADER_BYTES);
            for (int lost = last / SECTOR_BYTES; lost <= (file.limit() - 1) / SECTOR_BYTES; lost++) {
                ByteBuffer left = file(edit(before), edit(700));
                int from = Math.max(last, lost * SECTOR_BYTES);
                int to = Math.min(left.limit(), (lost + 1) * SECTOR_BYTES);
                left.put(from, new byte[to - from]);
                boolean whole = left.equals(file); // what was lost were zeros
                assertThat(whole || ManifestFormat.validRecordBytes(left, last) < 0)
                        .isTrue();
                assertThat(whole || ManifestFormat.isTorn(left, last))
                        .as("edit at %d of %d bytes, lost [%d, %d)", last, left.limit(), from, to)
                        .isTrue();
                cases++;
            }
        }
        assertThat(cases).isGreaterThan(1_000);
    }

    @Test
    void anEditWithAChangedByteIsNotTorn() {
        ByteBuffer file = file(edit(100), edit(700));
        int last = ManifestFormat.HEADER_BYTES + ManifestFormat.validRecordBytes(file, ManifestFormat.HEADER_BYTES);
        int inTheKey = last + 200;
        file.put(inTheKey, (byte) (file.get(inTheKey) ^ 1));
        assertThat(ManifestFormat.validRecordBytes(file, last)).isNegative();
        assertThat(ManifestFormat.isTorn(file, last)).isFalse();
    }

    private static ByteBuffer file(VersionEdit... edits) {
        ByteBuffer file = ByteBuffer.allocate(4 * SECTOR_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        file.put(ManifestFormat.header());
        for (VersionEdit edit : edits) {
            file.put(ManifestFormat.record(edit));
        }
        return file.flip();
    }

    /// With a table whose smallest key has so many bytes, none of them zero.
    private static VersionEdit edit(int keyBytes) {
        byte[] key = new byte[keyBytes];
        java.util.Arrays.fill(key, (byte) 'k');
        TableMetadata table = new TableMetadata(1, 0, 1, 1, 1, 0, key, new byte[] {'z'});
        return new VersionEdit(1, true, 2, List.of(), List.of(table));
    }
}
