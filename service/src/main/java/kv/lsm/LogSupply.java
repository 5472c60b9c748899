package kv.lsm;

import java.io.IOException;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongFunction;
import kv.lsm.disk.Closing;
import kv.lsm.disk.LogFile;
import kv.lsm.log.UnloggedFile;
import kv.lsm.log.WriteAheadLogFormat;
import kv.lsm.log.WriteAheadLogWriter;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Mapped;

/// Makes new active memtables with their logs; keeps one log file prepared, because filling it with zeros takes
/// longer than a writer should wait. Thread-safe.
final class LogSupply {
    private record Prepared(long number, LogFile file) {}

    private final StoreFiles files;
    private final WalMode mode;
    private final long standardBytes;
    private volatile Prepared prepared;
    private volatile boolean wanted;
    private volatile Failed failed;
    /// Held while there is a [Large].
    private final ReentrantLock makingLarge = new ReentrantLock();
    private boolean ended;

    /// @param bytes of the file that could not be made
    record Failed(IOException reason, long bytes) {}

    LogSupply(StoreFiles files) {
        this.files = files;
        mode = files.options().wal();
        standardBytes = logBytes(files.options().memtableBytes());
    }

    /// Of the file of a log with so many bytes of records.
    static long logBytes(long contentBytes) {
        long bytes = WriteAheadLogFormat.HEADER_BYTES + contentBytes + WriteAheadLogFormat.recordBytes(0, 0);
        return (bytes + Allocator.PAGE_BYTES - 1) & -Allocator.PAGE_BYTES;
    }

    /// Gets the next standard log ready; called by a thread that may take its time, after an error too.
    ///
    /// @param slices of that thread
    /// @param succeeded called if the log before could not be made, before anyone can see that this one was
    /// @return true when the log before could not be made: writers may wait for this one
    synchronized boolean prepare(TimeSlices slices, Runnable succeeded) throws IOException {
        if (prepared == null && mode != WalMode.NONE) {
            prepared = createStandard(slices);
        }
        boolean hadFailed = failed != null;
        if (hadFailed) {
            succeeded.run();
        }
        failed = null;
        return hadFailed;
    }

    /// Why the last standard log could not be made, or null: there is no use in asking for another before [#prepare]
    /// has made one.
    Failed failedOrNull() {
        return failed;
    }

    /// The log of one write that is larger than a memtable, made before its writer takes the lock of writers, so that
    /// the others need not wait until it is filled with zeros. There is one at a time; closing it deletes what was
    /// not used.
    final class Large implements AutoCloseable {
        private Prepared log;

        private Large(Prepared log) {
            this.log = log;
        }

        /// Deletes it, unless it was used: others need the room.
        void giveUp() {
            if (log != null) {
                Prepared unused = log;
                log = null;
                delete(unused);
            }
        }

        /// Null when it cannot be the next log: one with a higher number is in use.
        private Prepared takeOrNull(long lastNumber) {
            if (log != null && log.number < lastNumber) {
                giveUp();
            }
            Prepared taken = log;
            log = null;
            return taken;
        }

        @Override
        public void close() {
            try {
                giveUp();
            } finally {
                makingLarge.unlock();
            }
        }
    }

    /// Makes the log of a write of `recordBytes`, which [#isLarge]; null behind [#end].
    Large makeLarge(long recordBytes) throws IOException {
        makingLarge.lock();
        Large made = null;
        try {
            made = ended ? null : new Large(createLarge(logBytes(recordBytes)));
            return made;
        } finally {
            if (made == null) {
                makingLarge.unlock();
            }
        }
    }

    /// An empty memtable with room for a record of `recordBytes` at least.
    ///
    /// A log larger than the standard one that cannot be made says nothing of the next standard one.
    ///
    /// @param largeOrNull of the record, taken if it can be
    /// @param lastNumber of the log in use
    /// @param header of the new log, given its number
    Memtable memtable(
            long recordBytes, Large largeOrNull, long lastNumber, LongFunction<WriteAheadLogFormat.Header> header)
            throws IOException {
        wanted = true;
        try {
            return nextMemtable(recordBytes, largeOrNull, lastNumber, header);
        } finally {
            wanted = false;
        }
    }

    /// As the other, of usual size.
    Memtable memtable(LongFunction<WriteAheadLogFormat.Header> header) throws IOException {
        return memtable(0, null, 0, header);
    }

    /// True when [#memtable] need not make a file of zeros first. A hint: the answer may be another soon.
    boolean isReady(long recordBytes) {
        return mode == WalMode.NONE || prepared != null && !isLarge(recordBytes);
    }

    /// True when a record needs a log that is made for it, and not one that was prepared.
    boolean isLarge(long recordBytes) {
        return recordBytes > files.options().memtableBytes();
    }

    /// True while somebody waits for a memtable: only one at a time does, under the lock of writers or before
    /// there are any.
    boolean isWanted() {
        return wanted;
    }

    private synchronized Memtable nextMemtable(
            long recordBytes, Large largeOrNull, long lastNumber, LongFunction<WriteAheadLogFormat.Header> header)
            throws IOException {
        Prepared log;
        if (isLarge(recordBytes)) {
            Prepared made = largeOrNull == null ? null : largeOrNull.takeOrNull(lastNumber);
            log = made != null ? made : createLarge(logBytes(recordBytes));
            if (prepared != null && prepared.number < log.number) {
                discard(); // or a later memtable would have the smaller number
            }
        } else {
            log = prepared != null ? prepared : createStandard(TimeSlices.endless());
            prepared = null;
            failed = null;
        }
        return Memtable.active(
                begun(log, header.apply(log.number)),
                files.allocator(),
                files.options().memtableBytes());
    }

    /// @throws IOException when a page of the new log cannot be had; another log may do
    private WriteAheadLogWriter begun(Prepared log, WriteAheadLogFormat.Header header) throws IOException {
        try {
            WriteAheadLogWriter writer = new WriteAheadLogWriter(log.file, header, mode != WalMode.NONE);
            Mapped.throwPending();
            return writer;
        } catch (InternalError e) {
            Closing.quietly(log.file::close, FileNames.log(log.number));
            files.deleteUnneeded(FileNames.log(log.number));
            IOException reason = new IOException("a page of a new write-ahead log could not be reached", e);
            if (log.file.bytes() == standardBytes) {
                failed = new Failed(reason, standardBytes);
            }
            throw reason;
        }
    }

    private Prepared createStandard(TimeSlices slices) throws IOException {
        try {
            return create(standardBytes, slices);
        } catch (IOException e) {
            failed = new Failed(e, standardBytes);
            throw e;
        }
    }

    /// Not begun where there is no room for it, which what is written meanwhile needs.
    private Prepared createLarge(long bytes) throws IOException {
        long usable = files.usableBytes();
        if (mode != WalMode.NONE && usable < bytes) {
            throw new IOException(
                    "No space left on device for its log: bytes_needed=" + bytes + ", bytes_usable=" + usable);
        }
        return create(bytes, TimeSlices.endless());
    }

    private Prepared create(long bytes, TimeSlices slices) throws IOException {
        long number = files.newNumber();
        if (mode == WalMode.NONE) {
            return new Prepared(number, new UnloggedFile(files.allocator(), bytes));
        }
        LogFile file;
        try {
            file = files.disk().createLog(files.path(FileNames.log(number)), bytes, mode == WalMode.ALWAYS, slices);
        } catch (IOException e) {
            files.deleteUnneeded(FileNames.log(number)); // what there is of it takes the room of the next
            throw e;
        }
        try {
            // the manifest will name it, whatever is promised of its content
            files.syncDirectory();
        } catch (IOException e) {
            Closing.quietly(file::close, FileNames.log(number));
            files.deleteUnneeded(FileNames.log(number));
            throw e;
        }
        return new Prepared(number, file);
    }

    /// No more logs are made: deletes what was prepared and not used. Waits for who makes a large one.
    void end() {
        makingLarge.lock();
        try {
            ended = true;
        } finally {
            makingLarge.unlock();
        }
        discard();
    }

    private synchronized void discard() {
        if (prepared != null) {
            Prepared unused = prepared;
            prepared = null;
            delete(unused);
        }
    }

    private void delete(Prepared unused) {
        Closing.quietly(unused.file::close, FileNames.log(unused.number));
        files.deleteUnneeded(FileNames.log(unused.number));
    }
}
