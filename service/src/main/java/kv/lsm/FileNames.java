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
/// *.tmp         under construction; worthless when found on opening
/// ```
final class FileNames {
    static final String LOCK = "LOCK";
    static final String MANIFEST = "MANIFEST";
    static final String TEMPORARY = ".tmp";
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

    private static OptionalLong number(String name, String ending) {
        String digits = name.endsWith(ending) ? name.substring(0, name.length() - ending.length()) : "";
        return !digits.isEmpty() && digits.length() <= 18 && digits.chars().allMatch(c -> c >= '0' && c <= '9')
                ? OptionalLong.of(Long.parseLong(digits))
                : OptionalLong.empty();
    }
}
