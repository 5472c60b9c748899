package kv.lsm.table;

import java.io.IOException;
import kv.lsm.Waits;
import kv.lsm.disk.ReadFile;

/// Positional reads of tables. Their time is counted for threads that want to know what they waited for.
final class TimedReads {
    private TimedReads() {}

    /// As [ReadFile#read].
    static void read(ReadFile file, long position, long address, int bytes) throws IOException {
        Waits waitsOrNull = Waits.keptOrNull();
        if (waitsOrNull == null) {
            file.read(position, address, bytes);
            return;
        }
        long start = System.nanoTime();
        try {
            file.read(position, address, bytes);
        } finally {
            waitsOrNull.readFromDisk(System.nanoTime() - start);
        }
    }
}
