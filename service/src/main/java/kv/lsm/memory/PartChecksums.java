package kv.lsm.memory;

/// CRC-32C of many long parts of a file, each in the time of a short one: that of a part is made of those of all
/// bytes before its two ends.
///
/// Behind damage a record or a block is looked for at each place. A value may hold numbers that look like lengths
/// at each of them: of 1 MiB of these a start would checksum the log some 100 000 times. For one thread.
public final class PartChecksums {
    private static final int STEP_BYTES = 4 << 10;

    private final long file;
    /// Of the first so many steps of the file.
    private final int[] upToStep;
    private int known;

    /// @param file address of the file's bytes, which may be mapped
    public PartChecksums(long file, long bytes) {
        this.file = file;
        upToStep = new int[(int) (bytes / STEP_BYTES) + 1];
    }

    /// Of `[from, to)`, bytes from the start of the file.
    public int of(long from, long to) {
        return upTo(to) ^ Checksum.shifted(upTo(from), to - from);
    }

    private int upTo(long end) {
        int step = (int) (end / STEP_BYTES);
        for (; known < step; known++) {
            upToStep[known + 1] = followed(upToStep[known], (long) known * STEP_BYTES, STEP_BYTES);
        }
        return followed(upToStep[step], (long) step * STEP_BYTES, (int) (end % STEP_BYTES));
    }

    /// @param before checksum of what lies before `from`
    private int followed(int before, long from, int bytes) {
        return Checksum.shifted(before, bytes) ^ Checksum.ofMapped(file + from, bytes);
    }
}
