package kv.lsm.disk;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.SplittableRandom;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;

/// A file of a [FaultyDisk]: its bytes now, and as they were at the last sync. Used under the disk's lock.
final class FaultyFile {
    private static final int SECTOR_BYTES = 512;

    /// Holds the memory of logs and mappings; not counted as the store's.
    private final Allocator allocator = new Allocator();

    private byte[] written;
    private byte[] durable;
    /// The memory whose bytes are the file's, or null.
    private Log mappedLog;

    FaultyFile(byte[] content) {
        written = content.clone();
        durable = content.clone();
    }

    byte[] content() {
        return mappedLog == null ? written : Memory.copyOf(mappedLog.address, mappedLog.bytes);
    }

    void flipBits(int offset, int bits) {
        written[offset] ^= (byte) bits;
    }

    void makeDurable() {
        durable = content().clone();
    }

    FaultyFile afterKill() {
        return new FaultyFile(content());
    }

    FaultyFile afterPowerLoss(SplittableRandom random) {
        byte[] now = content();
        int bytes = durable.length >= now.length ? now.length : random.nextInt(durable.length, now.length + 1);
        byte[] left = Arrays.copyOf(durable, bytes);
        for (int sector = 0; sector < bytes; sector += SECTOR_BYTES) {
            if (random.nextBoolean()) {
                System.arraycopy(now, sector, left, sector, Math.min(SECTOR_BYTES, bytes - sector));
            }
        }
        return new FaultyFile(left);
    }

    WriteFile writer(FaultyDisk disk) {
        return new WriteFile() {
            @Override
            public void write(ByteBuffer buffer) throws IOException {
                synchronized (disk) {
                    disk.count("write");
                    int at = written.length;
                    byte[] longer = Arrays.copyOf(written, at + buffer.remaining());
                    buffer.get(longer, at, buffer.remaining());
                    written = longer;
                }
            }

            @Override
            public void sync() throws IOException {
                synchronized (disk) {
                    disk.count("sync");
                    if (!disk.syncLies()) {
                        makeDurable();
                    }
                }
            }

            @Override
            public void close() {}
        };
    }

    ReadFile reader(FaultyDisk disk) {
        byte[] content = content().clone();
        return new ReadFile() {
            private long mapping;

            @Override
            public long bytes() {
                return content.length;
            }

            @Override
            public long map() throws IOException {
                synchronized (disk) {
                    disk.count("map");
                }
                if (content.length > 0) {
                    mapping = allocator.allocate(content.length);
                    Memory.copy(content, mapping);
                }
                return mapping;
            }

            @Override
            public void read(long position, long address, int count) throws IOException {
                synchronized (disk) {
                    disk.count("read");
                }
                if (position < 0 || position + count > content.length) {
                    throw new EOFException("read beyond the end: position=" + position + ", bytes=" + count);
                }
                Memory.copy(Arrays.copyOfRange(content, (int) position, (int) position + count), address);
            }

            @Override
            public void close() {
                if (mapping != 0) {
                    allocator.free(mapping, content.length);
                }
            }
        };
    }

    LogFile log(FaultyDisk disk, int bytes, boolean direct) {
        written = new byte[bytes];
        durable = direct ? new byte[bytes] : new byte[0];
        Log log = new Log(disk, bytes, direct);
        mappedLog = direct ? null : log;
        return log;
    }

    private final class Log implements LogFile {
        private final FaultyDisk disk;
        private final int bytes;
        private final boolean direct;
        private final long address;

        Log(FaultyDisk disk, int bytes, boolean direct) {
            this.disk = disk;
            this.bytes = bytes;
            this.direct = direct;
            address = allocator.allocateAligned(bytes);
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
                disk.count("sync log");
                int start = (int) from & -SECTOR_BYTES;
                int end = Math.min(bytes, ((int) to + SECTOR_BYTES - 1) & -SECTOR_BYTES);
                Memory.copy(address + start, written, start, end - start);
                if (!disk.syncLies()) {
                    durable = Arrays.copyOf(durable, bytes);
                    System.arraycopy(written, start, durable, start, end - start);
                }
            }
        }

        @Override
        public void close() {
            synchronized (disk) {
                if (mappedLog == this) {
                    written = content();
                    mappedLog = null;
                }
                allocator.free(address, bytes);
            }
        }
    }
}
