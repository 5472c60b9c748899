package kv.lsm.disk;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The system's own files, as some machine has them.
class LinuxFileMemoryTest {
    private static final long MIB = 1 << 20;

    @TempDir
    private Path root;

    @BeforeEach
    void aMachineWithAGibibyteLeft() throws IOException {
        write("proc/meminfo", "MemTotal:  4194304 kB\nMemFree:  100 kB\nMemAvailable:    1048576 kB\n");
    }

    private void write(String file, String text) throws IOException {
        Path path = root.resolve(file);
        Files.createDirectories(path.getParent());
        Files.writeString(path, text);
    }

    private long availableMib() {
        return new LinuxFileMemory(root).availableBytes() / MIB;
    }

    private void group1(String path, long limitMib, long usageMib, long filesMib) throws IOException {
        write("sys/fs/cgroup/memory" + path + "/memory.limit_in_bytes", limitMib * MIB + "\n");
        write("sys/fs/cgroup/memory" + path + "/memory.usage_in_bytes", usageMib * MIB + "\n");
        write(
                "sys/fs/cgroup/memory" + path + "/memory.stat",
                "active_file 7\ntotal_active_file " + filesMib * MIB + "\ntotal_inactive_file 0\n");
    }

    private void group2(String path, String limit, long usageMib, long filesMib) throws IOException {
        write("sys/fs/cgroup" + path + "/memory.max", limit + "\n");
        write("sys/fs/cgroup" + path + "/memory.current", usageMib * MIB + "\n");
        write("sys/fs/cgroup" + path + "/memory.stat", "anon 5\nactive_file 0\ninactive_file " + filesMib * MIB + "\n");
    }

    @Test
    void withoutAGroupTheMachineTells() {
        assertThat(availableMib()).isEqualTo(1024);
    }

    @Test
    void whereNothingIsToldNothingLimits() throws IOException {
        Files.delete(root.resolve("proc/meminfo"));
        assertThat(new LinuxFileMemory(root).availableBytes()).isEqualTo(Long.MAX_VALUE);
        assertThat(new LinuxFileMemory(root).majorFaults()).isZero();
    }

    /// Pages of files that the group holds already are what is asked about.
    @Test
    void aGroupHasItsLimitLessWhatIsNoFile() throws IOException {
        write("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/kv/service\n0::/\n");
        group1("/kv/service", 512, 500, 300);
        assertThat(availableMib()).isEqualTo(512 - (500 - 300));
    }

    @Test
    void aGroupAboveCanHaveLess() throws IOException {
        write("proc/self/cgroup", "4:memory:/kv/service\n");
        group1("/kv/service", 512, 100, 0);
        group1("/kv", 256, 156, 0);
        assertThat(availableMib()).isEqualTo(100);
    }

    @Test
    void groupsOfTheSecondVersionTellInTheirOwnWords() throws IOException {
        write("proc/self/cgroup", "0::/kv.slice\n");
        group2("/kv.slice", "" + 512 * MIB, 500, 300);
        assertThat(availableMib()).isEqualTo(312);
    }

    @Test
    void aGroupIsTakenBackFromWhereItIsHeldBack() throws IOException {
        write("proc/self/cgroup", "0::/kv.slice\n");
        group2("/kv.slice", "" + 512 * MIB, 500, 300);
        write("sys/fs/cgroup/kv.slice/memory.high", 400 * MIB + "\n");
        assertThat(availableMib()).isEqualTo(200);
    }

    @Test
    void aGroupWithoutALimitLeavesItToTheMachine() throws IOException {
        write("proc/self/cgroup", "0::/kv.slice\n");
        group2("/kv.slice", "max", 500, 300);
        assertThat(availableMib()).isEqualTo(1024);
    }

    /// The path is the host's, and the container sees its own group as the root.
    @Test
    void insideAContainerTheRootIsTheGroup() throws IOException {
        write("proc/self/cgroup", "4:memory:/docker/0123\n");
        group1("", 128, 100, 30);
        assertThat(availableMib()).isEqualTo(58);
    }

    @Test
    void aGroupThatIsFullLeavesNothing() throws IOException {
        write("proc/self/cgroup", "4:memory:/kv\n");
        group1("/kv", 100, 120, 0);
        assertThat(availableMib()).isZero();
    }

    @Test
    void aProcessThatIsMovedToAnotherGroupIsFoundThere() throws IOException {
        write("proc/self/cgroup", "0::/a\n");
        group2("/a", "" + 512 * MIB, 500, 300);
        group2("/b", "" + 256 * MIB, 100, 0);
        LinuxFileMemory memory = new LinuxFileMemory(root);
        assertThat(memory.availableBytes()).isEqualTo(312 * MIB);
        write("proc/self/cgroup", "0::/b\n");
        assertThat(memory.availableBytes()).isEqualTo(156 * MIB);
        group2("/b", "" + 256 * MIB, 200, 0);
        assertThat(memory.availableBytes()).isEqualTo(56 * MIB);
    }

    /// As where too many files are open: what was told last holds, or tables would seem to fit.
    @Test
    void aLookThatCannotBeMadeLeavesTheLastAnswer() throws IOException {
        write("proc/self/cgroup", "0::/a\n");
        write("proc/self/stat", "77 (a) S 1 77 77 0 -1 4194304 100 0 42 0\n");
        group2("/a", "" + 256 * MIB, 0, 0);
        LinuxFileMemory memory = new LinuxFileMemory(root);
        assertThat(memory.availableBytes()).isEqualTo(256 * MIB);
        assertThat(memory.majorFaults()).isEqualTo(42);
        for (String file : new String[] {"proc/self/cgroup", "proc/meminfo", "proc/self/stat"}) {
            Files.delete(root.resolve(file));
        }
        assertThat(memory.availableBytes()).isEqualTo(256 * MIB);
        assertThat(memory.majorFaults()).isEqualTo(42);
    }

    @ParameterizedTest
    @ValueSource(strings = {"memory.max", "memory.current", "memory.stat"})
    void whatAGroupHadHoldsWhileItsFilesCannotBeRead(String file) throws IOException {
        write("proc/self/cgroup", "0::/a\n");
        group2("/a", "" + 512 * MIB, 500, 300);
        LinuxFileMemory memory = new LinuxFileMemory(root);
        assertThat(memory.availableBytes()).isEqualTo(312 * MIB);
        Path unreadable = root.resolve("sys/fs/cgroup/a").resolve(file);
        Files.delete(unreadable);
        Files.createDirectory(unreadable); // is there, and nobody can read it
        assertThat(memory.availableBytes()).isEqualTo(312 * MIB);
    }

    @Test
    void aLimitThatIsLiftedLimitsNothing() throws IOException {
        write("proc/self/cgroup", "0::/a\n");
        group2("/a", "" + 512 * MIB, 500, 300);
        LinuxFileMemory memory = new LinuxFileMemory(root);
        assertThat(memory.availableBytes()).isEqualTo(312 * MIB);
        group2("/a", "max", 500, 300);
        assertThat(memory.availableBytes()).isEqualTo(1024 * MIB);
    }

    @Test
    void aLimitOverAllNumbersLimitsNothing() throws IOException {
        write("proc/self/cgroup", "0::/a\n");
        group2("/a", "99999999999999999999", 500, 300);
        assertThat(availableMib()).isEqualTo(1024);
    }

    /// It is longer than the room that is there at first, and the pages of files stand at its end.
    @Test
    void aLongStatIsReadToItsEnd() throws IOException {
        write("proc/self/cgroup", "0::/a\n");
        group2("/a", "" + 512 * MIB, 500, 0);
        write("sys/fs/cgroup/a/memory.stat", "other 1\n".repeat(4_000) + "inactive_file " + 300 * MIB);
        assertThat(availableMib()).isEqualTo(312);
    }

    /// The store looks once a second, and who collects garbage stops all requests. A file is opened in some 300
    /// bytes, and one that is not there takes an exception.
    @Test
    void lookingAgainLeavesNextToNoGarbage() throws IOException {
        write("proc/self/cgroup", "0::/a/b\n");
        write("proc/self/stat", "77 (a) S 1 77 77 0 -1 4194304 100 0 42 0\n");
        group2("/a", "" + 512 * MIB, 500, 300);
        group2("/a/b", "" + 512 * MIB, 500, 300);
        LinuxFileMemory memory = new LinuxFileMemory(root);
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        memory.availableBytes();
        memory.majorFaults();
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int look = 0; look < 100; look++) {
            memory.availableBytes();
            memory.majorFaults();
        }
        assertThat((threads.getCurrentThreadAllocatedBytes() - before) / 100).isLessThan(8 << 10);
    }

    @Test
    void majorFaultsStandBehindANameWithBlanksAndBrackets() throws IOException {
        write("proc/self/stat", "77 (a (b) c) S 1 77 77 0 -1 4194304 100 0 42 0 3 4 0 0 20 0 1 0\n");
        assertThat(new LinuxFileMemory(root).majorFaults()).isEqualTo(42);
    }
}
