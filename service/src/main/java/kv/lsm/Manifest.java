package kv.lsm;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import kv.lsm.disk.Disk;
import kv.lsm.disk.ReadFile;
import kv.lsm.disk.WriteFile;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;

/// The log of version edits. An edit is part of the store once [#append] returned. One thread at a time.
///
/// After an append that failed there is no other: it would stand behind a torn edit, or behind one that its own
/// sync cannot bring to the disk any more.
///
/// Each opening of a store replaces the file by one that holds a single edit, so that it does not grow for
/// ever.
final class Manifest implements AutoCloseable {
    /// @param edits in order
    /// @param droppedBytes of a torn last record, which was never acknowledged
    record Content(List<VersionEdit> edits, long droppedBytes) {}

    private final WriteFile file;
    private long bytes;
    private boolean broken;

    private Manifest(WriteFile file) {
        this.file = file;
    }

    /// Reads the manifest of `directory`, which exists.
    ///
    /// @throws CorruptionException when it is damaged; a torn last edit is not damage
    static Content read(Disk disk, Path directory, Allocator allocator) throws IOException {
        Path path = directory.resolve(FileNames.MANIFEST);
        ByteBuffer content;
        try (ReadFile file = disk.open(path)) {
            int bytes = Math.toIntExact(file.bytes());
            long copy = allocator.allocate(bytes + 1L);
            try {
                file.read(0, copy, bytes);
                content = ByteBuffer.wrap(Memory.copyOf(copy, bytes)).order(ByteOrder.LITTLE_ENDIAN);
            } finally {
                allocator.free(copy, bytes + 1L);
            }
        }
        if (content.limit() < ManifestFormat.HEADER_BYTES || content.getLong(0) != ManifestFormat.MAGIC) {
            throw new CorruptionException(path, 0, "this is not a manifest");
        }
        if (content.getInt(8) != ManifestFormat.VERSION) {
            throw new CorruptionException(path, 8, "unknown manifest version: version=" + content.getInt(8));
        }
        if (content.getInt(12) != 0) {
            throw new CorruptionException(path, 12, "the header's last four bytes are not zero");
        }
        List<VersionEdit> edits = new ArrayList<>();
        int offset = ManifestFormat.HEADER_BYTES;
        for (int bytes; (bytes = ManifestFormat.validRecordBytes(content, offset)) > 0; offset += bytes) {
            edits.add(ManifestFormat.edit(content, offset));
        }
        if (edits.isEmpty()) {
            throw new CorruptionException(path, offset, "the first edit does not match its checksum");
        }
        requireTornTail(path, content, offset);
        return new Content(edits, content.limit() - offset);
    }

    /// An edit is appended only after the one before was synced, so at most the last can be torn.
    private static void requireTornTail(Path path, ByteBuffer content, int offset) {
        if (offset < content.limit() && !ManifestFormat.isTorn(content, offset)) {
            throw new CorruptionException(path, offset, "an edit does not match its checksum");
        }
        if (ManifestFormat.nextValidOffset(content, offset) < content.limit()) {
            throw new CorruptionException(path, offset, "an edit before valid ones does not match its checksum");
        }
    }

    /// Atomically replaces the manifest by one that holds `edit`.
    static Manifest replace(Disk disk, Path directory, VersionEdit edit) throws IOException {
        return replace(disk, directory, edit, () -> disk.syncDirectory(directory));
    }

    /// As the other, which leaves it open on an error whether the old or the new one is found on opening.
    ///
    /// @param syncDirectory makes the new name durable
    static Manifest replace(Disk disk, Path directory, VersionEdit edit, Retry.Attempt syncDirectory)
            throws IOException {
        Path path = directory.resolve(FileNames.MANIFEST);
        Path temporary = directory.resolve(FileNames.MANIFEST + FileNames.TEMPORARY);
        WriteFile file = disk.create(temporary);
        try {
            Manifest manifest = new Manifest(file);
            manifest.write(ManifestFormat.header());
            manifest.write(ManifestFormat.record(edit));
            file.sync();
            disk.rename(temporary, path);
            syncDirectory.run();
            return manifest;
        } catch (IOException | RuntimeException e) {
            try (file) { // a later one is another file: what a sync of this one has lost stays lost
                disk.delete(temporary);
            } catch (IOException second) {
                e.addSuppressed(second);
            }
            throw e;
        }
    }

    /// Makes `edit` durable.
    ///
    /// @throws LostSyncException when it was written and could not be synced
    /// @throws IOException when it could not, or an earlier append could not: then the edit may or may not be
    /// found on opening
    void append(VersionEdit edit) throws IOException {
        if (broken) {
            throw new IOException("the manifest is not appended to after an append that failed");
        }
        broken = true;
        write(ManifestFormat.record(edit));
        try {
            file.sync();
        } catch (IOException e) {
            throw new LostSyncException("the manifest", e);
        }
        broken = false;
    }

    /// True when nothing can be appended: another file has to take this one's place.
    boolean isBroken() {
        return broken;
    }

    /// From now on nothing is appended: another file is about to take this one's place.
    void giveUp() {
        broken = true;
    }

    private void write(ByteBuffer buffer) throws IOException {
        bytes += buffer.remaining();
        file.write(buffer);
    }

    /// Size of the file.
    long bytes() {
        return bytes;
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
