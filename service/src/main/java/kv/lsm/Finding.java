package kv.lsm;

/// One line of what a tool found in a closed store.
///
/// @param isProblem false for what is as it may be after a crash, and what the next opening puts in order
public record Finding(boolean isProblem, String file, String text) {
    static Finding problem(String file, long offset, String text) {
        return new Finding(true, file, text + ": offset=" + offset);
    }

    static Finding problem(String file, String text) {
        return new Finding(true, file, text);
    }

    static Finding note(String file, String text) {
        return new Finding(false, file, text);
    }

    @Override
    public String toString() {
        return (isProblem ? "problem: " : "note: ") + file + ": " + text;
    }
}
