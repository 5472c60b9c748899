package kv.http;

import com.sun.management.UnixOperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.function.IntSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// How many connections may be open: as many as are wanted, but no more than leave the store the descriptors that
/// its files need. A process without one left can neither flush nor accept.
///
/// ```
/// open files of the process = 1 000 │ two for each table │ connections, at least 16
/// ```
///
/// Thread-safe.
final class ConnectionLimit {
    private static final Logger log = LoggerFactory.getLogger(ConnectionLimit.class);
    /// left to the JVM, the selectors, logs, and what is opened for a moment
    private static final int DESCRIPTORS_RESERVED = 1_000;
    /// its own, and that of the table that a merge makes of it before it goes
    private static final int DESCRIPTORS_PER_TABLE = 2;
    private static final int CONNECTIONS_MIN = 16;

    private final int wanted;
    private final long descriptorsMax;
    private IntSupplier tables = () -> 0;
    private volatile int max;

    /// @param descriptorsMax files that the process may have open
    ConnectionLimit(int wanted, long descriptorsMax) {
        this.wanted = wanted;
        this.descriptorsMax = descriptorsMax;
        look();
        if (max < wanted) {
            log.warn("at most {} connections: the limit of open files is {}", max, descriptorsMax);
        }
    }

    static ConnectionLimit ofProcess(int wanted) {
        long descriptorsMax = ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean unix
                ? unix.getMaxFileDescriptorCount()
                : Long.MAX_VALUE;
        return new ConnectionLimit(wanted, descriptorsMax);
    }

    int max() {
        return max;
    }

    /// @param openTables how many there are, asked at each [#look]
    synchronized void leaveRoomFor(IntSupplier openTables) {
        tables = openTables;
        look();
    }

    /// Looks how many tables there are; about once a second.
    synchronized void look() {
        long reserved = DESCRIPTORS_RESERVED + (long) DESCRIPTORS_PER_TABLE * tables.getAsInt();
        max = (int) Math.min(wanted, Math.max(CONNECTIONS_MIN, descriptorsMax - reserved));
    }
}
