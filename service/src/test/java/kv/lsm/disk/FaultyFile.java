package kv.lsm.disk;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;

/// A file of a [FaultyDisk]: its bytes as the page cache has them, and as the disk has them. Used under the
/// disk's lock.
///
/// A sector of the cache is dirty when it is not as on the disk, unless a sync of it failed: then it is clean
/// and lost, and stays so until somebody writes it again or changes it.
final class FaultyFile {
    private static final int SECTOR_BYTES = 512;
    private static final int MIXED_LOGS_ONE_IN = 4;
    private static final int MIXED_BYTES = 1024;

    private byte[] written;
    private byte[] durable;
    /// By number, what a sector held when its sync failed.
    private final Map<Integer, byte[]> lost = new HashMap<>();
    /// The memory whose bytes are the file's, or null.
    private Log mappedLog;
    private boolean isLog;

    FaultyFile(byte[] content) {
        written = content.clone();
        durable = content.clone();
    }

    byte[] content() {
        return mappedLog == null ? written : Memory.copyOf(mappedLog.address, mappedLog.bytes);
    }

    int bytes() {
        return mappedLog == null ? written.length : mappedLog.bytes;
    }

    void flipBits(int offset, int bits) {
        written[offset] ^= (byte) bits;
    }

    private static byte[] sector(byte[] content, int number) {
        int from = Math.min(number * SECTOR_BYTES, content.length);
        return Arrays.copyOfRange(content, from, Math.min(from + SECTOR_BYTES, content.length));
    }

    private static int sectors(int bytes) {
        return (bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
    }

    private boolean isDirty(byte[] now, int sector) {
        int from = Math.min(sector * SECTOR_BYTES, now.length);
        int onDisk = Math.min(sector * SECTOR_BYTES, durable.length);
        return !Arrays.equals(
                        now,
                        from,
                        Math.min(from + SECTOR_BYTES, now.length),
                        durable,
                        onDisk,
                        Math.min(onDisk + SECTOR_BYTES, durable.length))
                && !Arrays.equals(sector(now, sector), lost.get(sector));
    }

    /// Takes the sector to the disk.
    private void settle(byte[] now, int sector) {
        byte[] cached = sector(now, sector);
        int from = sector * SECTOR_BYTES;
        if (durable.length < from + cached.length) {
            durable = Arrays.copyOf(durable, from + cached.length);
        }
        System.arraycopy(cached, 0, durable, from, cached.length);
        lost.remove(sector);
    }

    /// A sync of `[from, to)`: takes dirty sectors to the disk. When it `fails`, some of them, and the others
    /// are lost.
    private void sync(int from, int to, boolean fails, SplittableRandom random) {
        byte[] now = content();
        if (!fails && to >= now.length && durable.length < now.length) {
            durable = Arrays.copyOf(durable, now.length); // once, and not for each sector
        }
        for (int sector = from / SECTOR_BYTES; sector < sectors(Math.min(to, now.length)); sector++) {
            if (!isDirty(now, sector)) {
                continue;
            }
            if (fails && random.nextBoolean()) {
                lost.put(sector, sector(now, sector));
            } else {
                settle(now, sector);
            }
        }
        if (!fails && to >= now.length) { // the length, too: what was lost in between reads as zeros
            durable = Arrays.copyOf(durable, now.length);
        }
    }

    /// Writes the first bytes again, some of them when it fails.
    void rewrite(int bytes, FaultyDisk disk, boolean fails) {
        int again = fails ? disk.random().nextInt(bytes + 1) : bytes;
        lost.keySet().removeIf(sector -> sector < sectors(again));
        if (!disk.syncLies()) {
            sync(0, content().length, fails, disk.random());
        }
    }

    /// Not far behind what was synced, where a processor may have stored a number.
    private static int placeBehindSynced(byte[] now, byte[] synced, SplittableRandom random) {
        int different = Math.max(Arrays.mismatch(now, synced), 0);
        return (different & -Long.BYTES) + Long.BYTES * random.nextInt(MIXED_BYTES / Long.BYTES);
    }

    FaultyFile afterKill() {
        FaultyFile next = new FaultyFile(content());
        next.durable = durable.clone();
        next.lost.putAll(lost);
        next.isLog = isLog;
        return next;
    }

    /// A page of a log may have been on its way to the disk while records were appended: its front, and what comes
    /// before the page, are as at the last sync, its back as now.
    FaultyFile afterPowerLoss(SplittableRandom random) {
        byte[] now = content();
        int bytes = durable.length >= now.length ? now.length : random.nextInt(durable.length, now.length + 1);
        byte[] left = Arrays.copyOf(durable, bytes);
        int back = isLog && random.nextInt(MIXED_LOGS_ONE_IN) == 0 ? placeBehindSynced(now, left, random) : 0;
        int endOfMixed = (back + Allocator.PAGE_BYTES - 1) & -Allocator.PAGE_BYTES;
        for (int sector = 0; sector < sectors(bytes); sector++) {
            int from = Math.max(sector * SECTOR_BYTES, back);
            int to = Math.min((sector + 1) * SECTOR_BYTES, bytes);
            if (from < to && isDirty(now, sector) && (from < endOfMixed || random.nextBoolean())) {
                System.arraycopy(now, from, left, from, to - from);
            }
        }
        return new FaultyFile(left);
    }

    /// @param name of the file when it was made
    WriteFile writer(FaultyDisk disk, String name) {
        disk.opened();
        return new WriteFile() {
            private boolean closed;

            @Override
            public void write(ByteBuffer buffer) throws IOException {
                synchronized (disk) {
                    boolean fails = disk.begin("write " + name);
                    int room = disk.room(buffer.remaining());
                    boolean full = room < buffer.remaining();
                    int bytes = fails && room > 0 ? disk.random().nextInt(room + 1) : room;
                    int at = written.length;
                    written = Arrays.copyOf(written, at + bytes);
                    buffer.get(written, at, bytes);
                    lost.keySet().removeIf(sector -> sector >= at / SECTOR_BYTES);
                    disk.end(fails, "write " + name);
                    if (full) {
                        disk.endFull("write " + name);
                    }
                }
            }

            @Override
            public void sync() throws IOException {
                synchronized (disk) {
                    boolean fails = disk.begin("sync " + name);
                    if (!disk.syncLies()) {
                        FaultyFile.this.sync(0, written.length, fails, disk.random());
                    }
                    disk.end(fails, "sync " + name);
                }
            }

            @Override
            public void close() throws IOException {
                if (!closed) {
                    closed = true;
                    disk.close(name);
                }
            }
        };
    }

    ReadFile reader(FaultyDisk disk, String name) {
        byte[] content = content().clone();
        disk.opened();
        return new ReadFile() {
            private long mapping;
            private boolean closed;

            @Override
            public long bytes() {
                return content.length;
            }

            private final SplittableRandom pages = new SplittableRandom(content.length);

            @Override
            public long map() throws IOException {
                synchronized (disk) {
                    disk.end(disk.begin("map"), "map");
                }
                if (content.length > 0) {
                    mapping = disk.memory().allocate(content.length);
                    Memory.copy(content, mapping);
                }
                return mapping;
            }

            @Override
            public void read(long position, long address, int count) throws IOException {
                synchronized (disk) {
                    disk.end(disk.begin("read"), "read");
                }
                if (position < 0 || position + count > content.length) {
                    throw new EOFException("read beyond the end: position=" + position + ", bytes=" + count);
                }
                Memory.copy(Arrays.copyOfRange(content, (int) position, (int) position + count), address);
            }

            /// One page in three is not in memory, and another one the next time. Drawn apart from the disk's faults,
            /// which would else depend on how often somebody looked.
            @Override
            public boolean isCached(long position, long count) {
                synchronized (disk) {
                    return pages.nextInt(3) > 0;
                }
            }

            @Override
            public void close() throws IOException {
                if (closed) {
                    return;
                }
                closed = true;
                if (mapping != 0) {
                    disk.memory().free(mapping, content.length);
                }
                disk.close(name);
            }
        };
    }

    /// A log whose making ended after `bytes` zeros.
    static FaultyFile unfinishedLog(int bytes) {
        FaultyFile file = new FaultyFile(new byte[0]);
        file.written = new byte[bytes];
        return file;
    }

    LogFile log(FaultyDisk disk, String name, int bytes, boolean direct) {
        isLog = true;
        written = new byte[bytes];
        durable = direct ? new byte[bytes] : new byte[0];
        Log log = new Log(disk, name, bytes, direct);
        mappedLog = direct ? null : log;
        return log;
    }

    private final class Log implements LogFile {
        private final FaultyDisk disk;
        private final String name;
        private final int bytes;
        private final boolean direct;
        private final long address;
        private boolean closed;

        Log(FaultyDisk disk, String name, int bytes, boolean direct) {
            this.disk = disk;
            this.name = name;
            this.bytes = bytes;
            this.direct = direct;
            address = disk.memory().allocateAligned(bytes);
            disk.opened();
        }

        @Override
        public long address() {
            return address;
        }

        @Override
        public long bytes() {
            return bytes;
        }

        @Override
        public boolean isMapped() {
            return !direct;
        }

        /// Syncs the sectors that the range touches, as a disk does; not what else changed.
        @Override
        public void sync(long from, long to) throws IOException {
            synchronized (disk) {
                boolean fails = disk.begin("sync log");
                int start = (int) from & -SECTOR_BYTES;
                int end = Math.min(bytes, ((int) to + SECTOR_BYTES - 1) & -SECTOR_BYTES);
                if (direct) {
                    writeThrough(start, end, fails);
                } else if (!disk.syncLies()) {
                    FaultyFile.this.sync(start, end, fails, disk.random());
                }
                disk.end(fails, "sync log");
            }
        }

        /// Past the page cache: a sector is on the disk or as it was.
        private void writeThrough(int start, int end, boolean fails) {
            for (int at = start; at < end; at += SECTOR_BYTES) {
                if (!fails || disk.random().nextBoolean()) {
                    Memory.copy(address + at, written, at, Math.min(SECTOR_BYTES, end - at));
                    if (!disk.syncLies()) {
                        settle(written, at / SECTOR_BYTES);
                    }
                }
            }
        }

        @Override
        public void close() throws IOException {
            synchronized (disk) {
                if (closed) {
                    return;
                }
                closed = true;
                if (mappedLog == this) {
                    written = content();
                    mappedLog = null;
                }
                disk.memory().free(address, bytes);
                disk.close(name);
            }
        }
    }
}
