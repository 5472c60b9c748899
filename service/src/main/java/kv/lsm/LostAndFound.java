package kv.lsm;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import kv.lsm.disk.Disk;

/// Where a repair puts what it takes out of a store: the folder `lost` in the store's directory. A file gets
/// its second name there, durably, before anything else changes, and loses its first one at the end; so a
/// repair that is cut off can be run again.
final class LostAndFound {
    static final String FOLDER = "lost";

    private final Disk disk;
    private final Path directory;
    private final List<String> names = new ArrayList<>();

    LostAndFound(Disk disk, Path directory) {
        this.disk = disk;
        this.directory = directory;
    }

    /// Keeps the file; its path in the folder, as seen from the store's directory.
    String keep(String name) throws IOException {
        Path file = directory.resolve(name).toRealPath(); // what a link leads to
        Path kept = place(name, place -> Files.isRegularFile(place) && Files.isSameFile(place, file));
        if (!Files.exists(kept)) {
            try {
                Files.createLink(kept, file);
            } catch (FileSystemException | UnsupportedOperationException e) { // no hard links here
                Files.copy(file, kept);
                sync(kept);
            }
        }
        names.add(name);
        return FOLDER + "/" + kept.getFileName();
    }

    /// Moves what is no file, durably; as [#keep].
    String move(String name) throws IOException {
        Path moved = place(name, place -> false);
        Files.move(directory.resolve(name), moved, StandardCopyOption.ATOMIC_MOVE);
        disk.syncDirectory(moved.getParent());
        disk.syncDirectory(directory);
        return FOLDER + "/" + moved.getFileName();
    }

    private interface PlaceTest {
        boolean isSame(Path place) throws IOException;
    }

    /// Where nothing is yet, or what is to be kept already.
    private Path place(String name, PlaceTest test) throws IOException {
        Path folder = Files.createDirectories(directory.resolve(FOLDER));
        Path place = folder.resolve(name);
        for (int again = 1; Files.exists(place, LinkOption.NOFOLLOW_LINKS) && !test.isSame(place); again++) {
            place = folder.resolve(name + "." + again);
        }
        return place;
    }

    private static void sync(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.force(true);
        }
    }

    void makeDurable() throws IOException {
        if (!names.isEmpty()) {
            disk.syncDirectory(directory.resolve(FOLDER));
            disk.syncDirectory(directory);
        }
    }

    /// Takes the kept files' first names away, but that of the manifest, which has been replaced.
    void removeFirstNames() throws IOException {
        for (String name : names) {
            if (!name.equals(FileNames.MANIFEST)) {
                disk.delete(directory.resolve(name));
            }
        }
        disk.syncDirectory(directory);
    }
}
