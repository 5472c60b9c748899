package kv.lsm;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;

/// Makes a directory a store of hard links to another one's tables, with a manifest of its own.
///
/// The manifest comes last. Until then an empty file has its name: a process that dies leaves a directory that does
/// not open, where an empty one would be taken for a new store. Uses the file system itself and not
/// [kv.lsm.disk.Disk], which knows one directory and no links.
final class Checkpoint {
    private final StoreFiles files;
    private final Path directory;

    Checkpoint(StoreFiles files, Path directory) {
        this.files = files;
        this.directory = directory.toAbsolutePath().normalize();
    }

    /// Makes the directory, which does not exist yet.
    void create() throws IOException {
        try {
            if (isInsideStore()) {
                throw new CheckpointException(directory, CheckpointException.Reason.INSIDE_STORE, null);
            }
            Files.createDirectory(directory);
        } catch (FileAlreadyExistsException e) {
            throw new CheckpointException(directory, CheckpointException.Reason.EXISTS, e);
        } catch (NoSuchFileException e) {
            throw new CheckpointException(directory, CheckpointException.Reason.PARENT_MISSING, e);
        } catch (FileSystemException e) { // its name is too long, nobody may write there, …
            throw new CheckpointException(directory, CheckpointException.Reason.NOT_MADE, e);
        }
    }

    /// Keeps the directory from being opened until [#finish].
    void begin() throws IOException {
        Files.createFile(directory.resolve(FileNames.MANIFEST));
    }

    /// Also where the way to it leads through a symbolic link.
    private boolean isInsideStore() throws IOException {
        Path parent = directory.getParent();
        return parent != null // the root directory is refused because it exists
                && parent.toRealPath().startsWith(files.directory().toRealPath());
    }

    /// Links the version's tables; while it runs none of them may be deleted. They are durable, as every table
    /// of a version is.
    void link(Version version) throws IOException {
        for (TableMetadata table : version.tables()) {
            String name = FileNames.table(table.number());
            try {
                Files.createLink(directory.resolve(name), files.path(name).toRealPath()); // what a link leads to
            } catch (FileSystemException | UnsupportedOperationException e) {
                boolean linkable = Files.getFileStore(directory).equals(Files.getFileStore(files.directory()));
                if (linkable && e instanceof FileSystemException failed) {
                    throw failed; // a full disk is no reason to choose another one
                }
                throw new CheckpointException(directory, CheckpointException.Reason.OTHER_FILE_SYSTEM, e);
            }
        }
    }

    /// Makes the linked tables a store, durably.
    void finish(Version version) throws IOException {
        long next = 1
                + version.tables().stream()
                        .mapToLong(table -> Math.max(table.number(), table.run()))
                        .max()
                        .orElse(0);
        files.disk().syncDirectory(directory); // the tables' names before the manifest that names them
        Manifest.replace(files.disk(), directory, new VersionEdit(next, false, next, List.of(), version.tables()))
                .close();
        files.disk().syncDirectory(directory.getParent());
    }

    /// Takes back what was made.
    void remove(Exception cause) {
        try (var made = Files.list(directory)) {
            for (Path file : made.toList()) {
                Files.delete(file);
            }
            Files.delete(directory);
        } catch (IOException e) {
            cause.addSuppressed(e);
        }
    }
}
