package kv.lsm.bench;

import java.nio.file.Path;
import java.util.SplittableRandom;
import kv.lsm.LsmStore;
import kv.lsm.Store;
import kv.lsm.StoreOptions;
import kv.lsm.WalMode;

/// A process that writes until its write-ahead logs hold so many bytes, prints how many records that are, and
/// dies on the spot: what it leaves behind is what a crash leaves.
///
/// ```
/// java … kv.lsm.bench.LogFiller DIR BYTES
/// ```
///
/// Its memtables are the largest that there are. The bytes that do not fit into the first go into a second one,
/// and are there long before the first is flushed.
final class LogFiller {
    private static final int CHECK_RECORDS = 1_000;

    private LogFiller() {}

    public static void main(String[] args) {
        long bytes = Long.parseLong(args[1]);
        Store store = LsmStore.open(StoreOptions.at(Path.of(args[0])).toBuilder()
                .wal(WalMode.OS)
                .memtableBytes(1L << 30)
                .build());
        Keyspace values = new Keyspace(1);
        SplittableRandom random = new SplittableRandom(1);
        int records = 0;
        while (store.metrics().walBytes() < bytes) {
            for (int i = 0; i < CHECK_RECORDS; i++) {
                store.put(Keyspace.key(random.nextLong(1L << 50)), values.value(records++));
            }
        }
        System.out.println(records + " " + store.metrics().walBytes() + " "
                + store.metrics().flushes());
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
