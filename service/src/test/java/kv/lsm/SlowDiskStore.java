package kv.lsm;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;

/// The real store on a disk that is as slow as a test needs, for tests of what is in front of a store.
public final class SlowDiskStore {
    private final GatedDisk disk = new GatedDisk(new FaultyDisk());
    private final LsmStore store;

    public SlowDiskStore(WalMode wal, Duration stallLimit) {
        store = LsmStore.open(
                StoreOptions.at(Path.of("/slow")).toBuilder()
                        .wal(wal)
                        .memtableBytes(16 << 10)
                        .frozenMemtablesMax(1)
                        .stallLimit(stallLimit)
                        .build(),
                disk,
                new Allocator());
    }

    public Store store() {
        return store;
    }

    public void slowSyncs(int millis) {
        disk.slowSyncs(millis);
    }

    /// Returns when every further write has to wait for a flush, which does not end before [#letFlushesGo].
    public void stallWrites() {
        disk.hold(GatedDisk.FLUSH);
        for (int i = 0; store.metrics().frozenMemtables() == 0 || tryPut(i); i++) {
            tryPut(i);
        }
    }

    private boolean tryPut(int number) {
        PendingWrite begun =
                store.tryBegin(ByteBuffer.allocate(4).putInt(number).array(), new byte[500]);
        if (begun != null) {
            begun.await();
        }
        return begun != null;
    }

    public void letFlushesGo() {
        disk.letGo(GatedDisk.FLUSH);
    }
}
