package kv.lsm;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import kv.lsm.disk.Disk;

/// What is in a store's directory.
///
/// Somebody's own directory may be named like a table or a log: its number stays reserved, and that is all. Other
/// things with a name of the store are in the way: nobody can say that they are not what the store had there, and
/// who opens a pipe waits for ever.
///
/// @param names of all that is there
/// @param files names of files, and of links to files
/// @param inTheWay what has a name of the store and is no file
record StoreDirectory(List<String> names, List<String> files, SortedMap<String, Disk.Kind> inTheWay) {

    static StoreDirectory of(Disk disk, Path directory) throws IOException {
        List<String> names = disk.list(directory);
        List<String> files = new ArrayList<>();
        SortedMap<String, Disk.Kind> inTheWay = new TreeMap<>();
        for (String name : names) {
            Disk.Kind kind = disk.kindOf(directory.resolve(name));
            if (kind == Disk.Kind.FILE) {
                files.add(name);
            } else if (FileNames.isOfAStore(name)
                    && (kind != Disk.Kind.DIRECTORY || FileNames.number(name).isEmpty())) {
                inTheWay.put(name, kind);
            }
        }
        return new StoreDirectory(List.copyOf(names), List.copyOf(files), inTheWay);
    }

    /// What is wrong with one that is in the way.
    static String noFile(Disk.Kind kind) {
        return "no file, but " + kind;
    }

    /// No new file gets a number that something here has, of whatever kind, and whether or not it is complete.
    void reserveNumbers(StoreFiles files) {
        names.forEach(name -> FileNames.number(name).ifPresent(number -> files.startNumbersAt(number + 1)));
    }
}
