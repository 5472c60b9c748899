package kv.lsm;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import kv.lsm.disk.Closing;
import kv.lsm.disk.ReadFile;
import kv.lsm.log.WriteAheadLogFormat;
import kv.lsm.log.WriteAheadLogReader;

/// Turns the write-ahead logs found on opening into frozen memtables.
///
/// The logs are read as one: each names the one before it and where that ended. When a log broke off early
/// because its end was never synced, the later ones are dropped with it, so that what is recovered is always a
/// prefix of what was written.
///
/// A log that the ones behind it do not name is passed over: an earlier opening has dropped it, and a power cut
/// has taken its deletion back.
final class LogReplay {
    /// A log file, mapped.
    private record Log(long number, Path path, ReadFile file, long address) {
        WriteAheadLogReader reader() {
            return new WriteAheadLogReader(path, number, address, file.bytes());
        }
    }

    static final String NO_LOG = "this is no write-ahead log";

    private final StoreFiles files;
    private final List<Log> logs = new ArrayList<>();
    private final List<Log> passedOver = new ArrayList<>();
    private final List<Memtable> memtables = new ArrayList<>();
    private final List<Long> worthless = new ArrayList<>();
    /// Numbers of the logs whose file a memtable closes.
    private final Set<Long> owned = new HashSet<>();
    private final List<Long> withContent = new ArrayList<>();
    private final List<Long> notLogs = new ArrayList<>();
    private long records;
    private long droppedBytes;
    private boolean closedInOrder;
    /// Where the logs broke off, or null.
    private CorruptionException brokenIfSynced;

    private LogReplay(StoreFiles files) {
        this.files = files;
    }

    /// What the logs held.
    ///
    /// @param memtables oldest first, the last one not empty; the caller releases them
    /// @param worthless numbers of logs without a usable record, to be deleted before a record is written to a
    /// new log
    /// @param withContent numbers of logs that hold a record, usable or not, or what no log holds
    /// @param notLogs numbers of those that hold what no log holds: damaged, or somebody else's
    /// @param closedInOrder true when the last log says that all of them were made durable
    record Result(
            List<Memtable> memtables,
            List<Long> worthless,
            List<Long> withContent,
            List<Long> notLogs,
            long records,
            long droppedBytes,
            boolean closedInOrder) {}

    /// Replays the logs with these numbers, ascending.
    ///
    /// @param firstNeeded the lowest number of a log that may not be missing
    /// @throws CorruptionException when a log is damaged or one in between is missing
    static Result run(StoreFiles files, List<Long> numbers, long firstNeeded) throws IOException {
        LogReplay replay = new LogReplay(files);
        try {
            for (long number : numbers) {
                replay.open(number);
            }
            replay.passOverUnnamed();
            for (int i = 0; i < replay.logs.size(); i++) {
                replay.replay(i, firstNeeded);
            }
            replay.removeEmptyAtEnd();
        } catch (IOException | RuntimeException | Error e) {
            replay.memtables.forEach(Memtable::release);
            replay.closeUnowned();
            throw e;
        }
        replay.closeUnowned();
        return new Result(
                replay.memtables,
                replay.worthless,
                replay.withContent,
                replay.notLogs,
                replay.records,
                replay.droppedBytes,
                replay.closedInOrder);
    }

    private void open(long number) throws IOException {
        Path path = files.path(FileNames.log(number));
        ReadFile file = files.disk().open(path);
        try {
            logs.add(new Log(number, path, file, file.map()));
        } catch (IOException | RuntimeException e) {
            Closing.quietly(file::close, path);
            throw e;
        }
    }

    /// Every log names the last one before it that held records when it was begun, so what lies between the two
    /// is no part of the history.
    private void passOverUnnamed() {
        long named = Long.MAX_VALUE;
        for (int i = logs.size() - 1; i >= 0; i--) {
            Log log = logs.get(i);
            if (log.number > named) {
                logs.remove(i);
                passedOver.add(log);
                passOver(log);
                continue;
            }
            WriteAheadLogFormat.Header header = log.reader().header();
            if (header != null && header.number() == log.number) {
                named = header.previousNumber();
            }
        }
    }

    private void passOver(Log log) {
        worthless.add(log.number);
        try {
            noteContent(log, log.reader().read(0, record -> {}));
        } catch (CorruptionException e) { // nobody needs it, but there is something in it
            withContent.add(log.number);
        }
    }

    private void noteContent(Log log, WriteAheadLogReader.Result result) {
        boolean mayBeLog = WriteAheadLogFormat.mayBeLog(log.address, log.file.bytes());
        if (!mayBeLog) {
            notLogs.add(log.number);
        }
        if (result.records() > 0 || !mayBeLog) {
            withContent.add(log.number);
        }
    }

    /// Closes the files that no memtable took over.
    private void closeUnowned() {
        passedOver.forEach(log -> Closing.quietly(log.file::close, log.path));
        for (Log log : logs) {
            if (!owned.contains(log.number)) {
                Closing.quietly(log.file::close, log.path);
            }
        }
    }

    private void replay(int index, long firstNeeded) {
        Log log = logs.get(index);
        WriteAheadLogReader reader = log.reader();
        WriteAheadLogFormat.Header header = reader.header();
        if (header != null && header.number() != log.number) {
            throw new CorruptionException(log.path, 0, "the log has another number: number=" + header.number());
        }
        boolean predecessorMissing = header != null
                && header.previousNumber() >= firstNeeded
                && logs.subList(0, index).stream().noneMatch(before -> before.number == header.previousNumber());
        if (brokenIfSynced == null && predecessorMissing) {
            brokenIfSynced = new CorruptionException(
                    files.path(FileNames.log(header.previousNumber())), 0, "a write-ahead log is missing");
        }
        if (brokenIfSynced == null && header != null) {
            apply(log, reader, knownEnd(index));
        } else {
            drop(log, reader, knownEnd(index));
        }
    }

    private void apply(Log log, WriteAheadLogReader reader, long knownEnd) {
        Memtable memtable = Memtable.replayed(log.number, log.address, log.file, files.allocator());
        owned.add(log.number);
        memtables.add(memtable);
        WriteAheadLogReader.Result result = reader.read(knownEnd, memtable::index);
        records += result.records();
        closedInOrder = result.closed();
        note(log, result, knownEnd);
    }

    /// An empty log in between stays: the next one names it, and would seem to have lost the log before it.
    private void removeEmptyAtEnd() {
        while (!memtables.isEmpty() && memtables.getLast().isEmpty()) {
            Memtable empty = memtables.removeLast();
            worthless.add(empty.logNumber());
            empty.release();
        }
    }

    /// A log that was never started, or that follows a place where the logs broke off.
    private void drop(Log log, WriteAheadLogReader reader, long knownEnd) {
        WriteAheadLogReader.Result result = reader.read(knownEnd, record -> {});
        if (brokenIfSynced != null && result.synced()) {
            throw brokenIfSynced;
        }
        closedInOrder &= result.headerOrNull() == null;
        note(log, result, knownEnd);
        droppedBytes += result.headerOrNull() == null ? 0 : result.end();
        worthless.add(log.number);
    }

    private void note(Log log, WriteAheadLogReader.Result result, long knownEnd) {
        noteContent(log, result);
        droppedBytes += result.droppedBytes();
        // what lies behind the known end was dropped by an earlier opening already
        boolean broken = knownEnd > 0 ? result.end() < knownEnd : result.droppedBytes() > 0;
        if (brokenIfSynced == null && broken) {
            brokenIfSynced = new CorruptionException(
                    log.path, result.end(), "a record that was made durable does not match its checksum");
        }
    }

    /// Where the log ended as the next one tells it, or 0.
    private long knownEnd(int index) {
        for (Log later : logs.subList(index + 1, logs.size())) {
            WriteAheadLogFormat.Header header = later.reader().header();
            if (header != null) {
                return header.previousNumber() == logs.get(index).number ? header.previousEnd() : 0;
            }
        }
        return 0;
    }
}
