package kv.lsm;

import kv.lsm.disk.FileMemory;

/// Whether the tables fit into memory, which decides how they are read.
///
/// - FITS: all else. A point read just reads, a page fault brings what lies around too, a merge reads in place.
/// - COLD: they fit, but reads have missed pages lately, or tables were there when the store was opened. A
///   selector looks first what is in memory, a page fault brings one page, a merge reads by the page cache.
/// - EXCEEDS: they are larger than the memory that files can have. As COLD, but a merge reads past the page cache.
///
/// Looking costs a system call for each page that is read; so it is done only where a read may well have to
/// wait. Read-ahead around a fault, some MB, is for reads in order: where pages come and go it drives out what
/// is needed. Thread-safe.
final class MemoryFit {
    enum State {
        FITS,
        COLD,
        EXCEEDS
    }

    /// Of the memory, as percent, at which tables that were too large fit again: so that a store at the limit
    /// does not change its mind every second.
    private static final long FITS_AGAIN_PERCENT = 80;
    /// Misses between two looks at which the tables count as cold. Of the JVM's own pages a few are missed.
    private static final long MISSES_MIN = 30;
    /// Looks that they then count as cold for.
    private static final int COLD_LOOKS = 5;

    private static final System.Logger LOGGER = System.getLogger(MemoryFit.class.getName());

    private final long fixedBytes;
    private final FileMemory memory;
    private long availableBytes;
    /// At the last look; negative before the first, which cannot tell what was missed by whom.
    private long misses = -1;
    private boolean missedLately;
    private int coldLooks;
    private volatile State state = State.FITS;

    /// @param fixedBytes what the tables may take, or 0 to ask `memory`
    MemoryFit(long fixedBytes, FileMemory memory) {
        this.fixedBytes = fixedBytes;
        this.memory = memory;
        availableBytes = fixedBytes;
    }

    State state() {
        return state;
    }

    boolean exceeds() {
        return state == State.EXCEEDS;
    }

    /// Looks at memory and at what was missed; about once a second.
    ///
    /// @param tableBytes of all tables
    /// @param logBytes of the mapped logs, which take part of the memory for files
    /// @param missed how often gets so far found a page missing before they met it
    synchronized void look(long tableBytes, long logBytes, long missed) {
        if (fixedBytes == 0) {
            availableBytes = Math.max(0, memory.availableBytes() - logBytes);
            long missesNow = memory.majorFaults() + missed;
            missedLately = misses >= 0 && missesNow - misses >= MISSES_MIN;
            boolean foundTables = misses < 0 && tableBytes > 0;
            coldLooks = missedLately || foundTables ? COLD_LOOKS : Math.max(0, coldLooks - 1);
            misses = missesNow;
        } else {
            coldLooks = 0;
        }
        decide(tableBytes);
    }

    /// The tables are others; memory is as it was.
    synchronized void tablesChanged(long tableBytes) {
        decide(tableBytes);
    }

    /// True when reads miss pages of tables that fit: whoever brings them in saves reads from waiting.
    synchronized boolean isWorthWarming() {
        return state == State.COLD && missedLately;
    }

    private void decide(long tableBytes) {
        long limit = state == State.EXCEEDS ? availableBytes / 100 * FITS_AGAIN_PERCENT : availableBytes;
        State next = State.FITS;
        if (tableBytes > limit) {
            next = State.EXCEEDS;
        } else if (tableBytes > 0 && coldLooks > 0) {
            next = State.COLD;
        }
        State before = state;
        state = next;
        if (next == State.EXCEEDS && before != State.EXCEEDS) {
            tell("tables do not fit into memory, reads that wait for the disk leave the selectors", tableBytes);
        } else if (before == State.EXCEEDS && next != State.EXCEEDS) {
            tell("tables fit into memory again", tableBytes);
        }
    }

    private void tell(String what, long tableBytes) {
        LOGGER.log(
                fixedBytes == 0 ? System.Logger.Level.INFO : System.Logger.Level.DEBUG, // who gave it knows
                what + ": table_mb=" + (tableBytes >> 20) + ", memory_mb=" + (availableBytes >> 20));
    }
}
