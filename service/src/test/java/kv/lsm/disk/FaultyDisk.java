package kv.lsm.disk;

import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.UnaryOperator;
import kv.lsm.TimeSlices;
import kv.lsm.memory.Allocator;

/// A disk in memory that forgets what was not synced and fails when told to, as real ones do:
///
/// - a write that fails has written a first part; another call that fails may have been carried out or not; what
///   could not be closed is closed;
/// - after a sync that failed, what it did not bring to the disk is clean in the page cache, which still shows
///   it: a later sync does not bring it there either (see [FaultyFile]). Names are lost in the same way by a
///   failed sync of the directory;
/// - power loss, for each file: every 512-byte sector is as it was at the last sync or as it is now, by chance;
///   a file ends anywhere between its length at the last sync and now; of a page of a log the front may be as it
///   was, and the back as it is now. For the directory: of the creations, renames and deletions since the last sync
///   any part, in order or not, has happened;
/// - the end of a process leaves the page cache: what was not synced then is still not.
///
/// After [#killProcess], [#losePower] or a planned crash it is dead: every call fails, so that the threads of a
/// store that uses it come to an end; the other disk is what the next process finds.
public final class FaultyDisk implements Disk {
    /// Which calls fail.
    public interface Faults {
        /// True when call number `count` (from 1), which does `what`, is to fail.
        boolean fails(int count, String what);
    }

    /// How a crash comes.
    public enum Crash {
        PROCESS,
        POWER
    }

    public static final Faults NONE = (count, what) -> false;

    /// One name given or, when the file is null, taken.
    private record Naming(String name, FaultyFile fileOrNull) {
        void applyTo(Map<String, FaultyFile> names) {
            if (fileOrNull == null) {
                names.remove(name);
            } else {
                names.put(name, fileOrNull);
            }
        }
    }

    private final Map<String, FaultyFile> names = new HashMap<>();
    private final Map<String, FaultyFile> durableNames = new HashMap<>();
    /// Each element happens as a whole.
    private final List<List<Naming>> unsynced = new ArrayList<>();
    private Faults faults = NONE;
    private Faults crashes = NONE;
    private Crash crash;
    private FaultyDisk afterCrash;
    private SplittableRandom random = new SplittableRandom(1);
    private boolean syncLies;
    private boolean dead;
    private boolean locked;
    /// Files and locks that were opened by this disk and not yet closed.
    private int openHandles;
    /// Holds logs and mappings; not counted as the store's.
    private final Allocator memory = new Allocator();
    private int calls;
    private long capacity = Long.MAX_VALUE;

    public synchronized void setFaults(Faults newFaults) {
        faults = newFaults;
        calls = 0;
    }

    /// Plans a crash in the call that `when` tells.
    public synchronized void setCrash(Faults when, Crash how) {
        crashes = when;
        crash = how;
        calls = 0;
    }

    /// What is left after the planned crash, or null when it did not come.
    public synchronized FaultyDisk afterCrash() {
        return afterCrash;
    }

    /// What chance is made of from now on.
    public synchronized void setSeed(long seed) {
        random = new SplittableRandom(seed);
    }

    SplittableRandom random() {
        return random;
    }

    /// Makes every sync return without doing anything: a planted fault that a checker of durability has to
    /// find.
    public synchronized void setSyncLies() {
        syncLies = true;
    }

    /// All files together can have so many bytes more than they have now.
    public synchronized void setRoom(long bytes) {
        capacity = usedBytes() + bytes;
    }

    private long usedBytes() {
        return names.values().stream().mapToLong(FaultyFile::bytes).sum();
    }

    /// How many of `bytes` there is room for; who gets fewer ends the call with [#endFull].
    int room(int bytes) {
        return (int) Math.clamp(capacity - usedBytes(), 0, bytes);
    }

    void endFull(String what) throws IOException {
        throw new IOException("No space left on device: call=" + calls + ", " + what);
    }

    @Override
    public synchronized long usableBytes(Path directory) {
        return capacity - usedBytes();
    }

    public synchronized List<String> list() {
        return names.keySet().stream().sorted().toList();
    }

    /// Calls since the faults were set.
    public synchronized int calls() {
        return calls;
    }

    /// Counts calls that were made before the faults were set.
    public synchronized void addCalls(int before) {
        calls += before;
    }

    /// Files and locks that somebody has not closed.
    public synchronized int openHandles() {
        return openHandles;
    }

    /// Memory of logs and mappings that somebody has not closed.
    public long mappedBytes() {
        return memory.allocatedBytes();
    }

    Allocator memory() {
        return memory;
    }

    void opened() {
        openHandles++;
    }

    /// Ends a handle, which is gone also when the call fails, and when the disk is dead.
    synchronized void close(String what) throws IOException {
        openHandles--;
        if (!dead) {
            changeNothing("close " + what);
        }
    }

    /// Another disk with the same state, to be used in its place.
    public synchronized FaultyDisk copy() {
        FaultyDisk next = new FaultyDisk();
        Map<FaultyFile, FaultyFile> copies = new IdentityHashMap<>();
        UnaryOperator<FaultyFile> copy =
                file -> file == null ? null : copies.computeIfAbsent(file, FaultyFile::afterKill);
        names.forEach((name, file) -> next.names.put(name, copy.apply(file)));
        durableNames.forEach((name, file) -> next.durableNames.put(name, copy.apply(file)));
        unsynced.forEach(change -> next.unsynced.add(change.stream()
                .map(naming -> new Naming(naming.name, copy.apply(naming.fileOrNull)))
                .toList()));
        return next;
    }

    /// What is left when the process ends: everything that the operating system was given.
    public synchronized FaultyDisk killProcess() {
        FaultyDisk next = copy();
        dead = true;
        return next;
    }

    /// What is left when the machine stops.
    public synchronized FaultyDisk losePower(SplittableRandom chance) {
        Map<String, FaultyFile> left = new HashMap<>(durableNames);
        if (chance.nextBoolean()) { // a journal keeps the order, others do not
            unsynced.subList(0, chance.nextInt(unsynced.size() + 1)).forEach(change -> apply(change, left));
        } else {
            unsynced.stream().filter(change -> chance.nextBoolean()).forEach(change -> apply(change, left));
        }
        FaultyDisk next = new FaultyDisk();
        Map<FaultyFile, FaultyFile> survivors = new IdentityHashMap<>();
        left.forEach((name, file) ->
                next.put(name, survivors.computeIfAbsent(file, survivor -> survivor.afterPowerLoss(chance))));
        dead = true;
        return next;
    }

    private static void apply(List<Naming> change, Map<String, FaultyFile> names) {
        change.forEach(naming -> naming.applyTo(names));
    }

    private void put(String name, FaultyFile file) {
        names.put(name, file);
        durableNames.put(name, file);
    }

    /// Changes one byte of a file, as a failing disk would.
    public synchronized void flipBits(String name, int offset, int bits) {
        names.get(name).flipBits(offset, bits);
    }

    /// Bytes of a file as they are now.
    public synchronized byte[] content(String name) {
        return names.get(name).content();
    }

    /// Gives a file other content.
    public synchronized void setContent(String name, byte[] content) {
        put(name, new FaultyFile(content));
    }

    public synchronized void remove(String name) {
        names.remove(name);
        durableNames.remove(name);
    }

    /// Counts a call. True when it is to fail: the caller does a part of it, by chance, and ends it.
    boolean begin(String what) throws IOException {
        calls++;
        if (dead) {
            throw new IOException("the disk is gone: " + what);
        }
        return faults.fails(calls, what) || crashes.fails(calls, what);
    }

    /// Ends a call that was begun.
    void end(boolean fails, String what) throws IOException {
        if (!fails) {
            return;
        }
        if (crashes.fails(calls, what)) {
            afterCrash = crash == Crash.PROCESS ? killProcess() : losePower(random);
        }
        throw new IOException("planted fault: call=" + calls + ", " + what);
    }

    boolean syncLies() {
        return syncLies;
    }

    private static String name(Path file) {
        return file.getFileName().toString();
    }

    private FaultyFile existing(Path file) throws IOException {
        FaultyFile found = names.get(name(file));
        if (found == null) {
            throw new FileNotFoundException(file.toString());
        }
        return found;
    }

    private void change(Naming... namings) {
        List<Naming> change = List.of(namings);
        apply(change, names);
        unsynced.add(change);
    }

    /// A call that changes names; carried out by chance when it fails.
    private void change(String what, Naming... namings) throws IOException {
        boolean fails = begin(what);
        if (!fails || random.nextBoolean()) {
            change(namings);
        }
        end(fails, what);
    }

    private void changeNothing(String what) throws IOException {
        end(begin(what), what);
    }

    @Override
    public synchronized void createDirectory(Path directory) throws IOException {
        changeNothing("create directory");
    }

    @Override
    public synchronized List<String> list(Path directory) throws IOException {
        changeNothing("list");
        return List.copyOf(names.keySet());
    }

    @Override
    public Kind kindOf(Path path) {
        return Kind.FILE;
    }

    @Override
    public synchronized LogFile createLog(Path file, long bytes, boolean direct, TimeSlices slices) throws IOException {
        String what = "create " + name(file);
        boolean fails = begin(what);
        int room = room((int) bytes);
        if (!fails && room < bytes) {
            change(new Naming(name(file), FaultyFile.unfinishedLog(room)));
            endFull(what);
        }
        if (!fails) {
            FaultyFile log = new FaultyFile(new byte[0]);
            change(new Naming(name(file), log));
            return log.log(this, name(file), (int) bytes, direct);
        }
        if (random.nextBoolean()) {
            change(new Naming(name(file), FaultyFile.unfinishedLog(random.nextInt((int) bytes + 1))));
        }
        end(true, what);
        throw new AssertionError("a call that fails has ended");
    }

    @Override
    public synchronized ReadFile open(Path file) throws IOException {
        changeNothing("open " + name(file));
        return existing(file).reader(this, name(file));
    }

    @Override
    public synchronized WriteFile create(Path file) throws IOException {
        FaultyFile created = new FaultyFile(new byte[0]);
        change("create " + name(file), new Naming(name(file), created));
        return created.writer(this, name(file));
    }

    @Override
    public synchronized void rename(Path from, Path to) throws IOException {
        FaultyFile file = existing(from);
        change("rename " + name(to), new Naming(name(to), file), new Naming(name(from), null));
    }

    @Override
    public synchronized void delete(Path file) throws IOException {
        change("delete " + name(file), new Naming(name(file), null));
    }

    @Override
    public synchronized void rewrite(Path file, long bytes) throws IOException {
        String what = "rewrite " + name(file);
        FaultyFile found = existing(file);
        boolean fails = begin(what);
        found.rewrite((int) bytes, this, fails);
        end(fails, what);
    }

    @Override
    public synchronized void syncDirectory(Path directory) throws IOException {
        openDirectory();
        boolean fails = begin("sync directory");
        if (!syncLies) {
            unsynced.stream()
                    .filter(change -> !fails || random.nextBoolean())
                    .forEach(change -> apply(change, durableNames));
            unsynced.clear();
        }
        end(fails, "sync directory");
    }

    private void openDirectory() throws IOException {
        try {
            changeNothing("open directory");
        } catch (IOException e) {
            throw dead ? e : new SyncNotBegunException(e);
        }
    }

    @Override
    public synchronized Closeable lock(Path file) throws IOException {
        changeNothing("lock");
        if (locked) {
            return null;
        }
        locked = true;
        opened();
        return this::unlock;
    }

    private synchronized void unlock() throws IOException {
        if (locked) {
            locked = false;
            close("lock");
        }
    }
}
