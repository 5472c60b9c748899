package kv.lsm.disk;

import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import kv.lsm.Turns;

/// A disk in memory that forgets what was not synced and fails when told to.
///
/// After [#killProcess] or [#losePower] it is dead: every call fails, so that the threads of a store that uses it come to an end;
/// the returned disk is what the next process finds.
///
/// Power loss, for each file: every 512-byte sector is as it was at the last sync or as it is now, by chance; a file ends anywhere
/// between its length at the last sync and now. For the directory: of the creations, renames and deletions since the last sync a
/// first part, by chance, has happened.
public final class FaultyDisk implements Disk {
    /// Which calls fail.
    public interface Faults {
        /// True when call number `count` (from 1), which does `what`, is to fail.
        boolean fails(int count, String what);
    }

    public static final Faults NONE = (count, what) -> false;

    private final Map<String, FaultyFile> names = new HashMap<>();
    private final Map<String, FaultyFile> durableNames = new HashMap<>();
    private final List<Runnable> unsyncedChanges = new ArrayList<>();
    private Faults faults = NONE;
    private boolean syncLies;
    private boolean dead;
    private boolean locked;
    private int calls;

    public synchronized void setFaults(Faults newFaults) {
        faults = newFaults;
        calls = 0;
    }

    /// Makes every sync return without doing anything: a planted fault that a checker of durability has to find.
    public synchronized void setSyncLies() {
        syncLies = true;
    }

    /// Calls since the faults were set.
    public synchronized int calls() {
        return calls;
    }

    /// What is left when the process ends: everything that the operating system was given.
    public synchronized FaultyDisk killProcess() {
        FaultyDisk next = new FaultyDisk();
        names.forEach((name, file) -> next.put(name, file.afterKill()));
        dead = true;
        return next;
    }

    /// What is left when the machine stops.
    public synchronized FaultyDisk losePower(SplittableRandom random) {
        unsyncedChanges.subList(0, random.nextInt(unsyncedChanges.size() + 1)).forEach(Runnable::run);
        FaultyDisk next = new FaultyDisk();
        durableNames.forEach((name, file) -> next.put(name, file.afterPowerLoss(random)));
        dead = true;
        return next;
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

    void count(String what) throws IOException {
        calls++;
        if (dead) {
            throw new IOException("the disk is gone: " + what);
        }
        if (faults.fails(calls, what)) {
            throw new IOException("planted fault: call=" + calls + ", " + what);
        }
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

    private void link(String name, FaultyFile file) {
        names.put(name, file);
        unsyncedChanges.add(() -> durableNames.put(name, file));
    }

    private void unlink(String name) {
        names.remove(name);
        unsyncedChanges.add(() -> durableNames.remove(name));
    }

    @Override
    public synchronized void createDirectory(Path directory) throws IOException {
        count("create directory");
    }

    @Override
    public synchronized List<String> list(Path directory) throws IOException {
        count("list");
        return List.copyOf(names.keySet());
    }

    @Override
    public synchronized LogFile createLog(Path file, long bytes, boolean direct, Turns turns) throws IOException {
        count("create " + name(file));
        FaultyFile log = new FaultyFile(new byte[0]);
        link(name(file), log);
        return log.log(this, (int) bytes, direct);
    }

    @Override
    public synchronized ReadFile open(Path file) throws IOException {
        count("open " + name(file));
        return existing(file).reader(this);
    }

    @Override
    public synchronized WriteFile create(Path file) throws IOException {
        count("create " + name(file));
        FaultyFile created = new FaultyFile(new byte[0]);
        link(name(file), created);
        return created.writer(this);
    }

    @Override
    public synchronized void rename(Path from, Path to) throws IOException {
        count("rename " + name(to));
        FaultyFile file = existing(from);
        String oldName = name(from);
        String newName = name(to);
        names.remove(oldName);
        names.put(newName, file);
        unsyncedChanges.add(() -> {
            durableNames.remove(oldName);
            durableNames.put(newName, file);
        });
    }

    @Override
    public synchronized void delete(Path file) throws IOException {
        count("delete " + name(file));
        unlink(name(file));
    }

    @Override
    public synchronized void sync(Path file) throws IOException {
        count("sync " + name(file));
        if (!syncLies) {
            existing(file).makeDurable();
        }
    }

    @Override
    public synchronized void syncDirectory(Path directory) throws IOException {
        count("sync directory");
        if (!syncLies) {
            unsyncedChanges.forEach(Runnable::run);
            unsyncedChanges.clear();
        }
    }

    @Override
    public synchronized Closeable lock(Path file) {
        if (locked) {
            return null;
        }
        locked = true;
        return () -> locked = false;
    }
}
