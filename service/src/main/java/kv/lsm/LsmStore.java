package kv.lsm;

import java.io.Closeable;
import java.io.IOException;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.LongAdder;
import kv.lsm.disk.Disk;
import kv.lsm.disk.RealDisk;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Keys;
import kv.lsm.memory.Mapped;
import kv.lsm.table.BlockBuffers;
import kv.lsm.table.SSTable;

/// The log-structured merge tree: routes calls to the parts that do the work.
///
/// ```
/// put, delete ─► WritePath ─► log + active memtable ── full ──► frozen ─► Flusher ─► level 0 ─► Compactor ─► levels
/// get, range  ─► Views: active memtable, frozen memtables, runs of tables, newest first
/// ```
public final class LsmStore implements Store {
    private static final System.Logger LOGGER = System.getLogger(LsmStore.class.getName());
    /// what all loads of a prefetch may give, and next to never do
    private static final long PREFETCHED_RARE = 0x9e37_79b9_7f4a_7c15L;

    private final StoreFiles files;
    private final LogSupply logs;
    private final Closeable directoryLock;
    private final Counters counters = new Counters();
    private final Failure failure = new Failure();
    private final BlockBuffers buffers;
    private final RangeMemory rangeMemory = new RangeMemory();
    private final StoreMetrics.Recovery recovery;
    private final Views views;
    private final MemoryFit fit;
    private final MemoryWatch memoryWatch;
    private final Catalog catalog;
    private final WritePath writePath;
    private final IntervalSync intervalSyncOrNull;
    private final Compactor compactor;
    private final Flusher flusher;
    private boolean closed;
    /// Made of what was prefetched. Set so rarely that the selectors do not take each other's copy of this
    /// object from the cache, and set at all so that no load is left out because nobody uses what it brings.
    private long prefetched;

    /// Opens the store in the options' directory, which is made when it is absent.
    ///
    /// @throws StoreLockedException when another store has the directory
    /// @throws CorruptionException  when a file is damaged or missing
    /// @throws StoreException       when a file cannot be read or written
    public static Store open(StoreOptions options) {
        Allocator allocator = new Allocator();
        return open(options, new RealDisk(allocator), allocator);
    }

    /// As [#open(StoreOptions)], on another disk.
    static LsmStore open(StoreOptions options, Disk disk, Allocator allocator) {
        Closeable lock = null;
        try {
            disk.createDirectory(options.directory());
            lock = disk.lock(options.directory().resolve(FileNames.LOCK));
            if (lock == null) {
                throw new StoreLockedException(options.directory());
            }
            StoreFiles files = new StoreFiles(disk, allocator, options);
            LogSupply logs = new LogSupply(files);
            return new LsmStore(files, logs, lock, new StoreOpening(files, logs).open());
        } catch (IOException | RuntimeException | InternalError e) { // the last: of a mapped page that cannot be read
            release(lock, e);
            throw e instanceof StoreException known
                    ? known
                    : new StoreException(
                            "cannot open the store: directory=" + options.directory() + ": "
                                    + StoreException.reasonOf(e),
                            e);
        }
    }

    private static void release(Closeable lockOrNull, Throwable cause) {
        try {
            if (lockOrNull != null) {
                lockOrNull.close();
            }
        } catch (IOException e) {
            cause.addSuppressed(e);
        }
    }

    private LsmStore(StoreFiles files, LogSupply logs, Closeable directoryLock, StoreOpening.Result opened) {
        this.files = files;
        this.logs = logs;
        this.directoryLock = directoryLock;
        recovery = opened.recovery();
        if (recovery.droppedBytes() > 0) {
            LOGGER.log(
                    System.Logger.Level.WARNING,
                    "dropped the torn end of the write-ahead log: bytes=" + recovery.droppedBytes() + ", directory="
                            + files.directory());
        }
        StoreOptions options = files.options();
        WalSync walSync = new WalSync(counters);
        buffers = new BlockBuffers(files.allocator());
        views = new Views(opened.view());
        fit = files.fit();
        memoryWatch = new MemoryWatch(fit, views, counters);
        catalog = new Catalog(
                files, views, failure, opened.manifest(), opened.view().version());
        writePath =
                new WritePath(options, views, logs, walSync, failure, counters, this::memtableFrozen, this::failedFor);
        intervalSyncOrNull = options.wal() == WalMode.INTERVAL
                ? new IntervalSync(views, walSync, failure, options.walInterval())
                : null;
        compactor = new Compactor(files, views, catalog, failure, counters, this::tablesMerged);
        flusher = new Flusher(files, logs, views, catalog, failure, counters, this::memtableFlushed);
        if (opened.view().frozenCount() > 0) {
            flusher.wake();
        }
    }

    /// Why what a writer stalled for this cause waits for has failed and is tried again, or null.
    private String failedFor(StallCause cause) {
        return switch (cause) {
            case NO_LOG -> {
                LogSupply.Failed log = logs.failedOrNull();
                yield log == null ? null : StoreException.reasonOf(log.reason());
            }
            case FROZEN_MEMTABLES -> flusher.failureOrNull();
            default -> compactor.failureOrNull();
        };
    }

    private void memtableFrozen() {
        flusher.wake();
    }

    private void tablesMerged() {
        memoryWatch.tablesChanged();
        writePath.wake();
    }

    private void memtableFlushed() {
        memoryWatch.tablesChanged();
        writePath.wake();
        compactor.wake();
    }

    @Override
    public byte[] get(byte[] key) {
        return get(key, null, true);
    }

    @Override
    public byte[] tryGet(byte[] key, byte[] roomOrNull) {
        return get(key, roomOrNull, false);
    }

    @Override
    public boolean readsWaitForDisk() {
        return switch (fit.state()) {
            case FITS -> false;
            // what is read by calls is in memory after the first, or it was never said to fit
            case COLD -> files.options().read() == ReadMode.MMAP;
            case EXCEEDS -> true;
        };
    }

    private byte[] get(byte[] key, byte[] roomOrNull, boolean mayWait) {
        requireKey(key);
        int token = views.enter();
        try {
            ReadView view = views.current();
            if (view == null) {
                throw new StoreClosedException();
            }
            long hash = Keys.hash(key);
            byte[] value = view.getFromMemtables(key, hash, roomOrNull);
            if (value != null) {
                counters.gets.count(0, 0, 0);
            } else {
                value = view.getFromTables(key, hash, roomOrNull, buffers, counters, reading(mayWait));
                if (value == SSTable.NOT_CACHED) {
                    counters.coldGets.increment();
                    value = WOULD_WAIT;
                }
            }
            Mapped.throwPending();
            return value == SSTable.DELETED ? null : value;
        } catch (InternalError e) {
            throw files.unreadablePage(e);
        } finally {
            views.exit(token);
        }
    }

    private ReadView.Reading reading(boolean mayWait) {
        if (!readsWaitForDisk()) {
            return ReadView.Reading.AT_ONCE;
        }
        return mayWait ? ReadView.Reading.PATIENTLY : ReadView.Reading.WITHOUT_WAITING;
    }

    @Override
    public void prefetchGets(byte[][] keys, int count) {
        if (readsWaitForDisk()) {
            return; // it would be the prefetch that waits
        }
        prefetch(keys, count, false);
    }

    @Override
    public void prefetchWrites(byte[][] keys, int count) {
        prefetch(keys, count, true);
    }

    private void prefetch(byte[][] keys, int count, boolean toWrite) {
        PrefetchRoom room = PrefetchRoom.ofThread();
        room.makeRoomFor(count);
        int token = views.enter();
        try {
            ReadView view = views.current();
            if (view != null) {
                long loaded = toWrite
                        ? view.active().prefetchWrites(keys, count, room)
                        : view.prefetchGets(keys, count, room);
                if (loaded == PREFETCHED_RARE) {
                    prefetched = loaded;
                }
                Mapped.throwPending();
            }
        } catch (InternalError e) { // a page of a mapped file could not be read: the call that needs it tells
            LOGGER.log(System.Logger.Level.DEBUG, "nothing prefetched", e);
        } finally {
            views.exit(token);
            room.letGo(count);
        }
    }

    @Override
    public void put(byte[] key, byte[] value) {
        requireValue(value);
        begin(key, value).await();
    }

    @Override
    public void delete(byte[] key) {
        begin(key, null).await();
    }

    @Override
    public boolean writesWaitForDisk() {
        return files.options().wal() == WalMode.ALWAYS;
    }

    @Override
    public PendingWrite begin(byte[] key, byte[] valueOrNull) {
        return begin(key, valueOrNull, true);
    }

    @Override
    public PendingWrite tryBegin(byte[] key, byte[] valueOrNull) {
        return begin(key, valueOrNull, false);
    }

    @Override
    public PendingWrite begin(WriteBatch batch) {
        long userBytes = 0;
        long deletes = 0;
        for (WriteBatch.Write write : batch.writes()) {
            requireKey(write.key());
            userBytes += write.key().length;
            if (write.valueOrNull() == null) {
                deletes++;
            } else {
                requireValue(write.valueOrNull());
                userBytes += write.valueOrNull().length;
            }
        }
        if (userBytes > StoreOptions.VALUE_BYTES_MAX) {
            throw new IllegalArgumentException(
                    "batch too long: bytes=" + userBytes + ", max=" + StoreOptions.VALUE_BYTES_MAX);
        }
        if (batch.writes().isEmpty()) {
            return PendingWrite.DONE;
        }
        PendingWrite begun = writePath.begin(batch);
        counters.userBytes.add(userBytes);
        counters.deletes.add(deletes);
        counters.puts.add(batch.writes().size() - deletes);
        return begun;
    }

    private PendingWrite begin(byte[] key, byte[] valueOrNull, boolean mayWait) {
        requireKey(key);
        if (valueOrNull != null) {
            requireValue(valueOrNull);
        }
        PendingWrite begun = writePath.begin(key, valueOrNull, mayWait);
        LongAdder counter = valueOrNull == null ? counters.deletes : counters.puts;
        if (begun == null) {
            return null;
        } else if (begun == PendingWrite.DONE) {
            counter.increment();
            return begun;
        }
        return () -> {
            begun.await();
            counter.increment();
        };
    }

    @Override
    public RangeCursor range(byte[] start, byte[] endOrNull) {
        Objects.requireNonNull(start, "start");
        counters.ranges.increment();
        ReadView view = views.retain();
        try {
            // the limit is read after the view was taken, so it belongs to this view's active memtable
            MergingIterator entries =
                    new MergingIterator(view.sources(start, view.active().limit()));
            Mapped.throwPending();
            byte[] end = endOrNull == null ? null : endOrNull.clone();
            return new StoreCursor(files, views, counters, view, entries, end, rangeMemory);
        } catch (RuntimeException e) {
            view.release();
            throw e;
        } catch (InternalError e) {
            view.release();
            throw files.unreadablePage(e);
        }
    }

    @Override
    public Administration administration() {
        return new StoreAdministration(files, views, catalog, writePath, flusher, compactor, failure);
    }

    private static void requireKey(byte[] key) {
        Objects.requireNonNull(key, "key");
        if (key.length == 0 || key.length > StoreOptions.KEY_BYTES_MAX) {
            throw new IllegalArgumentException(
                    "key length out of range: bytes=" + key.length + ", min=1, max=" + StoreOptions.KEY_BYTES_MAX);
        }
    }

    private static void requireValue(byte[] value) {
        Objects.requireNonNull(value, "value");
        if (value.length > StoreOptions.VALUE_BYTES_MAX) {
            throw new IllegalArgumentException(
                    "value too long: bytes=" + value.length + ", max=" + StoreOptions.VALUE_BYTES_MAX);
        }
    }

    @Override
    public int openTables() {
        ReadView view = views.current(); // its own fields only
        return view == null ? 0 : view.openTables().size();
    }

    @Override
    public StoreMetrics metrics() {
        ReadView view = views.retain();
        try {
            return counters.snapshot(
                    view,
                    views.pinnedBytes(),
                    files.allocator(),
                    flusher.failureOrNull() != null,
                    compactor.failureOrNull() != null,
                    recovery);
        } finally {
            view.release();
        }
    }

    @Override
    public boolean isWritable() {
        ReadView view = views.current(); // its own fields only
        if (view == null || failure.isSet()) {
            return false;
        }
        StallCause cause = writePath.stopCause(view);
        return cause == null || failedFor(cause) == null;
    }

    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        if (intervalSyncOrNull != null) {
            intervalSyncOrNull.stop();
        }
        try {
            writePath.close();
        } finally {
            // without a log the last memtables exist nowhere else
            flusher.stop(files.options().wal() == WalMode.NONE);
            compactor.stop();
            memoryWatch.stop();
            views.close();
            buffers.close();
            releaseFiles();
        }
        failure.checkUntold(); // what was acknowledged could not be made durable
    }

    private void releaseFiles() {
        for (Closeable step : List.<Closeable>of(logs::end, catalog::close, directoryLock)) {
            try {
                step.close();
            } catch (IOException e) {
                failure.set("the store's files could not be closed", e);
            }
        }
    }
}
