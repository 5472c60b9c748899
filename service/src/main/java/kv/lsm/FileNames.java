package kv.lsm;

import java.util.Locale;
import java.util.OptionalLong;

/// The names of the files in a store's directory.
///
/// ```
/// LOCK          held while a store is open
/// MANIFEST      which tables and logs are part of the store
/// 000012.table  a table
/// 000013.log    a write-ahead log
/// MANIFEST.tmp, 000012.table.tmp
///               under construction; worthless when found on opening
/// REPAIR.tmp    of a repair that was not finished; see [RepairMark]
/// ```
final class FileNames {
    static final String LOCK = "LOCK";
    static final String MANIFEST = "MANIFEST";
    static final String TEMPORARY = ".tmp";
    static final String REPAIR = "REPAIR" + TEMPORARY;
    /// Names with more digits are somebody else's.
    static final long NUMBER_MAX = 999_999_999_999_999_999L;
    private static final int DIGITS_MAX = 18;
    private static final String TABLE = ".table";
    private static final String LOG = ".log";

    private FileNames() {}

    static String table(long number) {
        return name(number, TABLE);
    }

    static String log(long number) {
        return name(number, LOG);
    }

    /// Of ASCII digits whatever the locale: a name that a later start does not know is a lost file.
    private static String name(long number, String ending) {
        return String.format(Locale.ROOT, "%06d%s", number, ending);
    }

    static OptionalLong tableNumber(String name) {
        return number(name, TABLE);
    }

    static OptionalLong logNumber(String name) {
        return number(name, LOG);
    }

    /// Of a table, whole or under construction, or a log.
    static OptionalLong number(String name) {
        String finalName = withoutTemporary(name);
        OptionalLong table = tableNumber(finalName);
        return table.isPresent() ? table : logNumber(finalName);
    }

    /// True for every name that a store gives to a file, but that of the lock.
    static boolean isOfAStore(String name) {
        return isFinal(name) || isTemporary(name);
    }

    /// The same of files that are whole.
    static boolean isFinal(String name) {
        return name.equals(MANIFEST)
                || tableNumber(name).isPresent()
                || logNumber(name).isPresent();
    }

    /// True for the names that a store gives to what is worthless on opening; others may be somebody else's.
    static boolean isTemporary(String name) {
        return name.equals(MANIFEST + TEMPORARY)
                || name.equals(REPAIR)
                || tableNumber(withoutTemporary(name)).isPresent() && name.endsWith(TEMPORARY);
    }

    /// The name that a file under construction is going to have.
    static String withoutTemporary(String name) {
        return name.endsWith(TEMPORARY) ? name.substring(0, name.length() - TEMPORARY.length()) : name;
    }

    /// Of a name as the store writes it: `77.log` is somebody else's, and not `000077.log`.
    private static OptionalLong number(String name, String ending) {
        String digits = name.endsWith(ending) ? name.substring(0, name.length() - ending.length()) : "";
        if (digits.isEmpty() || digits.length() > DIGITS_MAX || !digits.chars().allMatch(c -> c >= '0' && c <= '9')) {
            return OptionalLong.empty();
        }
        long number = Long.parseLong(digits);
        return name(number, ending).equals(name) ? OptionalLong.of(number) : OptionalLong.empty();
    }
}
