package kv.lsm.bench;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import kv.http.HttpOptions;
import kv.http.KvServer;
import kv.lsm.RangeCursor;
import kv.lsm.Store;
import kv.lsm.StoreMetrics;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.Cache;
import org.rocksdb.ChecksumType;
import org.rocksdb.CompressionType;
import org.rocksdb.DataBlockIndexType;
import org.rocksdb.FlushOptions;
import org.rocksdb.IndexType;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.ReadOptions;
import org.rocksdb.ReadTier;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.Status;
import org.rocksdb.WriteOptions;
import picocli.CommandLine;
import picocli.CommandLine.Option;
import sun.misc.Signal;

/// RocksDB through its JNI interface behind the HTTP front of the service, for data that are larger than memory:
/// set up as its authors advise, with a block cache and direct I/O, index and filters partitioned and in that cache.
///
/// A GET that its block cache cannot answer leaves the selector for the front's readers, as one of our own store does.
///
/// With `--settle` it is flushed and fully compacted before it ends, which is its best state for reads.
public final class RocksService implements Store {
    private static final double SHARE_OF_INDEX_AND_FILTERS = 0.5;

    static {
        RocksDB.loadLibrary();
    }

    private final BloomFilter filter = new BloomFilter(10, false);
    private final Cache cache;
    private final Options options;
    private final WriteOptions unsynced = new WriteOptions();
    private final ReadOptions waiting = new ReadOptions();
    private final ReadOptions cached = new ReadOptions().setReadTier(ReadTier.BLOCK_CACHE_TIER);
    private final RocksDB db;
    private boolean isClosed;

    private RocksService(Path directory, long cacheBytes) throws RocksDBException {
        cache = new LRUCache(cacheBytes, -1, false, SHARE_OF_INDEX_AND_FILTERS);
        options = new Options()
                .setCreateIfMissing(true)
                .setWriteBufferSize(64 << 20)
                .setMaxWriteBufferNumber(3)
                .setLevel0FileNumCompactionTrigger(4)
                .setMaxBytesForLevelBase(256L << 20)
                .setTargetFileSizeBase(64 << 20)
                .setMaxBackgroundJobs(2)
                .setUseDirectReads(true)
                .setUseDirectIoForFlushAndCompaction(true)
                .setCompressionType(CompressionType.NO_COMPRESSION)
                .setTableFormatConfig(new BlockBasedTableConfig()
                        .setBlockSize(4 << 10)
                        .setDataBlockIndexType(DataBlockIndexType.kDataBlockBinaryAndHash)
                        .setFilterPolicy(filter)
                        .setIndexType(IndexType.kTwoLevelIndexSearch)
                        .setPartitionFilters(true)
                        .setCacheIndexAndFilterBlocks(true)
                        .setCacheIndexAndFilterBlocksWithHighPriority(true)
                        .setPinTopLevelIndexAndFilter(true)
                        .setBlockCache(cache)
                        .setChecksumType(ChecksumType.kCRC32c));
        db = RocksDB.open(options, directory.toString());
    }

    @Override
    public byte[] get(byte[] key) {
        try {
            return db.get(waiting, key);
        } catch (RocksDBException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public byte[] tryGet(byte[] key, byte[] roomOrNull) {
        try {
            return db.get(cached, key);
        } catch (RocksDBException e) {
            if (e.getStatus().getCode() == Status.Code.Incomplete) {
                return WOULD_WAIT;
            }
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void put(byte[] key, byte[] value) {
        try {
            db.put(unsynced, key, value);
        } catch (RocksDBException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void delete(byte[] key) {
        try {
            db.delete(unsynced, key);
        } catch (RocksDBException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public RangeCursor range(byte[] start, byte[] endOrNull) {
        throw new UnsupportedOperationException("nobody measures ranges of this");
    }

    @Override
    public StoreMetrics metrics() {
        return new StoreMetrics(
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                Map.of(),
                List.of(),
                0,
                0,
                0,
                0,
                0,
                0,
                false,
                false,
                StoreMetrics.Recovery.NOTHING); // nobody asks for them
    }

    @Override
    public boolean isWritable() {
        return !isClosed;
    }

    private void settle() throws RocksDBException {
        try (FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
            db.flush(flush);
        }
        db.compactRange();
    }

    @Override
    public void close() {
        if (isClosed) {
            return;
        }
        isClosed = true;
        RocksStore.closeAll(db, options, unsynced, waiting, cached, cache, filter);
    }

    private static final class Asked {
        @Option(names = "--port", required = true)
        int port;

        @Option(names = "--dir", required = true)
        Path directory;

        @Option(names = "--cache", required = true, description = "bytes of the block cache")
        long cacheBytes;

        @Option(names = "--settle")
        boolean settle;
    }

    public static void main(String[] args) throws Exception {
        Asked asked = CommandLine.populateCommand(new Asked(), args);
        CountDownLatch stop = new CountDownLatch(1);
        Signal.handle(new Signal("TERM"), signal -> stop.countDown());
        Files.createDirectories(asked.directory);
        KvServer server =
                KvServer.bind(HttpOptions.onFreePort().withSelectors(1).withPort(asked.port));
        try (RocksService store = new RocksService(asked.directory, asked.cacheBytes)) {
            server.serve(store);
            System.out.println("ready: http://127.0.0.1:" + server.port());
            stop.await();
            server.stopInOrder();
            if (asked.settle) {
                store.settle();
            }
        }
    }
}
