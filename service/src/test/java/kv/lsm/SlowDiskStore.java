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
        this(options().wal(wal).stallLimit(stallLimit).build());
    }

    private SlowDiskStore(StoreOptions options) {
        store = LsmStore.open(options, disk, new Allocator());
    }

    /// One whose tables are larger than memory and not mapped: each read of a value is one of the disk.
    public static SlowDiskStore largerThanMemory() {
        return new SlowDiskStore(
                options().read(ReadMode.PREAD).tableMemoryBytes(1).build());
    }

    private static StoreOptions.Builder options() {
        return StoreOptions.at(Path.of("/slow")).toBuilder()
                .memtableBytes(16 << 10)
                .frozenMemtablesMax(1);
    }

    public Store store() {
        return store;
    }

    public void slowSyncs(int millis) {
        disk.slowSyncs(millis);
    }

    /// Of tables.
    public void slowReads(int millis) {
        disk.slowReads(millis);
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
