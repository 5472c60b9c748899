package kv.lsm.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordingFile;
import kv.lsm.TimeSlices;
import kv.lsm.memory.Allocator;
import kv.lsm.memory.Memory;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RealDiskTest {
    private final Allocator allocator = new Allocator();
    private final Disk disk = new RealDisk(allocator);

    @TempDir
    Path directory;

    private String otherProcessFindsLock(Path file) throws Exception {
        Process probe = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        LockProbe.class.getName(),
                        file.toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        String answer = new String(probe.getInputStream().readAllBytes()).strip();
        assertThat(probe.waitFor()).isZero();
        return answer;
    }

    /// The system tells it without the file.
    @Test
    void anErrorOfAFileThatIsOpenNamesTheFile() throws Exception {
        Path full = Path.of("/dev/full");
        try (WriteFile file = disk.create(full)) {
            assertThatThrownBy(() -> file.write(ByteBuffer.allocate(1)))
                    .hasMessage("No space left on device: /dev/full");
            assertThatThrownBy(file::sync).hasMessage("Invalid argument: /dev/full");
        }
        assertThatThrownBy(() -> disk.createLog(full, 1, false, TimeSlices.endless()))
                .hasMessage("No space left on device: /dev/full");
    }

    /// Closing any descriptor of a file ends all locks that a process has on it.
    @Test
    void aRefusedSecondLockDoesNotEndTheFirst() throws Exception {
        Path file = directory.resolve("LOCK");
        Closeable first = disk.lock(file);
        assertThat(first).isNotNull();
        assertThat(disk.lock(file)).isNull();
        Files.createDirectory(directory.resolve("x"));
        Files.createSymbolicLink(directory.resolve("elsewhere"), directory);
        assertThat(new RealDisk(allocator).lock(directory.resolve("x/../LOCK"))).isNull();
        assertThat(disk.lock(directory.resolve("elsewhere/LOCK")))
                .as("the same directory by another name")
                .isNull();
        assertThat(otherProcessFindsLock(file)).isEqualTo("taken");
        first.close();
        assertThat(otherProcessFindsLock(file)).isEqualTo("free");
        disk.lock(file).close();
    }

    /// Or a power cut could take the directory with all that is durable in it.
    @Test
    void theNamesOfNewDirectoriesAreDurable() throws Exception {
        Path made = directory.resolve("a/b/c");
        Set<String> synced = new HashSet<>();
        try (Recording recording = new Recording()) {
            recording.enable("jdk.FileForce").withThreshold(Duration.ZERO);
            recording.start();
            disk.createDirectory(made);
            recording.stop();
            Path file = directory.resolve("recording.jfr");
            recording.dump(file);
            RecordingFile.readAllEvents(file).stream()
                    .filter(event -> event.getEventType().getName().equals("jdk.FileForce"))
                    .forEach(event -> synced.add(event.getString("path")));
        }
        assertThat(made).isDirectory();
        assertThat(synced)
                .contains(
                        directory.toString(),
                        directory.resolve("a").toString(),
                        directory.resolve("a/b").toString());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aLogHoldsWhatWasSyncedWhoeverIsInterrupted(boolean direct) throws Exception {
        Path file = directory.resolve("log");
        Thread.currentThread().interrupt();
        LogFile log = disk.createLog(file, 3 * 4096, direct, TimeSlices.endless());
        assertThat(log.bytes()).isEqualTo(3 * 4096);
        assertThat(log.isMapped()).isEqualTo(!direct);
        Memory.putLong(log.address() + 4090, 0x1122_3344_5566_7788L);
        log.sync(4090, 4098);
        disk.syncDirectory(directory);
        assertThat(Thread.interrupted())
                .as("the interrupt is kept for the caller")
                .isTrue();
        log.close();
        byte[] content = Files.readAllBytes(file);
        assertThat(content).hasSize(3 * 4096);
        assertThat(content[4090]).isEqualTo((byte) 0x88);
        assertThat(content[4097]).isEqualTo((byte) 0x11);
        assertThat(allocator.allocatedBytes()).isZero();
    }

    @Test
    void aLargeFileIsWrittenWhole() throws Exception {
        byte[] content = new byte[(3 << 20) + 77];
        new SplittableRandom(1).nextBytes(content);
        Path file = directory.resolve("large");
        WriteFile write = disk.create(file);
        for (int done = 0; done < content.length; done += 700_000) {
            write.write(ByteBuffer.wrap(content, done, Math.min(content.length - done, 700_000)));
            write.beginWriting();
        }
        write.sync();
        write.close();
        assertThat(file).hasBinaryContent(content);
    }

    /// Or the second time would close what somebody else opened meanwhile.
    @Test
    void aFileThatIsClosedTwiceIsClosedOnce() throws Exception {
        WriteFile write = disk.create(directory.resolve("written"));
        write.close();
        List<FileChannel> others = new ArrayList<>();
        for (int i = 0; i < 4; i++) { // the numbers of its descriptors among them
            others.add(FileChannel.open(
                    directory.resolve("other" + i), StandardOpenOption.CREATE, StandardOpenOption.WRITE));
        }
        write.close();
        for (FileChannel other : others) {
            other.write(ByteBuffer.allocate(10));
            other.close();
        }
    }

    /// As many as [kv.http.ConnectionLimit] leaves to each.
    @Test
    void anOpenTableTakesOneDescriptorAndTwoFromItsDeletionOn() throws Exception {
        Path descriptors = Path.of("/proc/self/fd");
        Assumptions.assumeTrue(Files.isDirectory(descriptors), "no /proc");
        Path file = Files.write(directory.resolve("1.table"), new byte[8192]).toRealPath();
        ReadFile read = disk.open(file);
        read.map();
        assertThat(open(descriptors, file)).isEqualTo(1);
        read.willBeDeleted();
        read.willBeDeleted();
        assertThat(open(descriptors, file)).isEqualTo(2);
        read.close();
        assertThat(open(descriptors, file)).isZero();
    }

    private static int open(Path descriptors, Path file) throws IOException {
        int found = 0;
        try (DirectoryStream<Path> all = Files.newDirectoryStream(descriptors)) {
            for (Path one : all) {
                try {
                    found += Files.readSymbolicLink(one).equals(file) ? 1 : 0;
                } catch (NoSuchFileException e) { // another thread has closed that one meanwhile
                    continue;
                }
            }
        }
        return found;
    }
}
