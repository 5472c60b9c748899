package kv.lsm;

/// The values that an option may have, ends included. Who reads options, from a command line or from code,
/// checks them by this one rule.
public record OptionRange(long min, long max) {

    /// `value`, when it is in the range.
    ///
    /// @throws IllegalArgumentException with a line for the user when it is not
    public long check(String name, long value) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(
                    "option out of range: " + name + "=" + value + ", min=" + min + ", max=" + max);
        }
        return value;
    }

    public int check(String name, int value) {
        return (int) check(name, (long) value);
    }
}
