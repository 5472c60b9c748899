package kv.lsm;

import java.io.IOException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import kv.lsm.disk.Disk;
import kv.lsm.disk.ForwardingDisk;
import kv.lsm.disk.ForwardingReadFile;
import kv.lsm.disk.LogFile;
import kv.lsm.disk.ReadFile;
import kv.lsm.disk.WriteFile;

/// Holds chosen threads at the creation of a table or the sync of a log until told to let them go on, to make a
/// flush, a compaction or a sync last as long as a test needs.
final class GatedDisk extends ForwardingDisk {
    static final String FLUSH = "kv-flush";
    static final String COMPACTION = "kv-compact";

    private static final long HELD_LIMIT_NANOS = 120_000_000_000L;

    private final Set<String> held = new HashSet<>();
    private int passes;
    private int waiting;
    private volatile int syncMillis;
    private volatile int readMillis;

    GatedDisk(Disk disk) {
        super(disk);
    }

    synchronized void hold(String thread) {
        held.add(thread);
    }

    synchronized void letGo(String thread) {
        held.remove(thread);
        notifyAll();
    }

    /// Lets one thread that stands at its gate, or comes to it next, go on to the next gate.
    synchronized void letOnePass() {
        passes++;
        notifyAll();
    }

    /// Opens every gate when it is closed: in the head of a `try` behind the store, so that a test which fails
    /// before it opens the gate ends instead of waiting in the store's close.
    interface Gates extends AutoCloseable {
        @Override
        void close();
    }

    Gates openedAtTheEnd() {
        return this::letAllGo;
    }

    private synchronized void letAllGo() {
        held.clear();
        notifyAll();
    }

    /// From now on a sync of a log takes so long, whoever asks for it.
    void slowSyncs(int millis) {
        syncMillis = millis;
    }

    /// From now on a positional read of a file takes so long, whoever asks for it.
    void slowReads(int millis) {
        readMillis = millis;
    }

    /// Returns when a thread stands at its gate.
    void awaitHeld() throws InterruptedException {
        awaitHeld(1);
    }

    /// Returns when so many threads stand at their gates.
    synchronized void awaitHeld(int threads) throws InterruptedException {
        long deadline = System.nanoTime() + HELD_LIMIT_NANOS;
        while (waiting < threads) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("not held within a minute: expected=" + threads + ", held=" + waiting);
            }
            wait(100);
        }
    }

    private synchronized void pass() {
        if (!held.contains(Thread.currentThread().getName())) {
            return;
        }
        waiting++;
        notifyAll();
        try {
            while (held.contains(Thread.currentThread().getName()) && passes == 0) {
                wait();
            }
            passes = Math.max(0, passes - 1);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        } finally {
            waiting--;
        }
    }

    private static void sleep(int millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Override
    public WriteFile create(Path file) throws IOException {
        pass();
        return super.create(file);
    }

    @Override
    public LogFile createLog(Path file, long bytes, boolean direct, TimeSlices slices) throws IOException {
        LogFile log = super.createLog(file, bytes, direct, slices);
        return new LogFile() {
            @Override
            public long address() {
                return log.address();
            }

            @Override
            public long bytes() {
                return log.bytes();
            }

            @Override
            public boolean isMapped() {
                return log.isMapped();
            }

            @Override
            public void sync(long from, long to) throws IOException {
                pass();
                sleep(syncMillis);
                log.sync(from, to);
            }

            @Override
            public void close() throws IOException {
                log.close();
            }
        };
    }

    @Override
    public ReadFile open(Path file) throws IOException {
        return new ForwardingReadFile(super.open(file)) {
            @Override
            public void read(long position, long address, int bytes) throws IOException {
                sleep(readMillis);
                super.read(position, address, bytes);
            }
        };
    }
}
