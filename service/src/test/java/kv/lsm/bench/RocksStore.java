package kv.lsm.bench;

import java.nio.file.Path;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.ChecksumType;
import org.rocksdb.CompressionType;
import org.rocksdb.DataBlockIndexType;
import org.rocksdb.FlushOptions;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteOptions;

/// RocksDB through its JNI interface, with the memory and durability that our store has: the same memtables,
/// block size, filter bits, level 0 trigger and level 1 size, no compression; a block cache that holds all
/// data, as our mapped files do; the log written but not synced, or synced with each write.
///
/// Where it has an option that makes one of the rows faster, it gets it: a hash index in data blocks and
/// whole-key filters in memtables for point reads. Before the reads it is flushed and fully compacted, which is
/// its best state; our store is read as the fill left it.
final class RocksStore implements Contender {
    private static final long CACHE_BYTES = 512L << 20;

    static {
        RocksDB.loadLibrary();
    }

    private final BloomFilter filter = new BloomFilter(10, false);
    private final LRUCache cache = new LRUCache(CACHE_BYTES);
    private final Options options = new Options()
            .setCreateIfMissing(true)
            .setWriteBufferSize(64 << 20)
            .setMaxWriteBufferNumber(3)
            .setLevel0FileNumCompactionTrigger(4)
            .setLevel0SlowdownWritesTrigger(16)
            .setLevel0StopWritesTrigger(32)
            .setMaxBytesForLevelBase(256L << 20)
            .setTargetFileSizeBase(64 << 20)
            .setMaxBackgroundJobs(2)
            .setMemtablePrefixBloomSizeRatio(0.1)
            .setMemtableWholeKeyFiltering(true)
            .setCompressionType(CompressionType.NO_COMPRESSION)
            .setTableFormatConfig(new BlockBasedTableConfig()
                    .setBlockSize(4 << 10)
                    .setDataBlockIndexType(DataBlockIndexType.kDataBlockBinaryAndHash)
                    .setFilterPolicy(filter)
                    .setBlockCache(cache)
                    .setChecksumType(ChecksumType.kCRC32c));
    private final WriteOptions writeOptions;
    private final ReadOptions readOptions = new ReadOptions();
    private final RocksDB db;

    RocksStore(Path directory, Durability durability) throws RocksDBException {
        writeOptions = new WriteOptions().setSync(durability == Durability.SYNC);
        db = RocksDB.open(options, directory.toString());
    }

    @Override
    public void put(byte[] key, byte[] value) throws RocksDBException {
        db.put(writeOptions, key, value);
    }

    @Override
    public byte[] get(byte[] key) throws RocksDBException {
        return db.get(readOptions, key);
    }

    @Override
    public long scan() {
        long count = 0;
        try (RocksIterator iterator = db.newIterator(readOptions)) {
            for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
                if (iterator.key().length + iterator.value().length > 0) {
                    count++;
                }
            }
        }
        return count;
    }

    @Override
    public void settle() throws RocksDBException {
        try (FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
            db.flush(flush);
        }
        db.compactRange();
    }

    @Override
    public void close() {
        closeAll(db, options, writeOptions, readOptions, cache, filter);
    }

    /// In their order.
    static void closeAll(AutoCloseable... all) {
        for (AutoCloseable one : all) {
            try {
                one.close();
            } catch (Exception e) {
                throw new IllegalStateException("RocksDB did not close", e);
            }
        }
    }
}
