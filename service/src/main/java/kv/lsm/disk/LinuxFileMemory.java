package kv.lsm.disk;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// What Linux tells in `/proc` and `/sys/fs/cgroup`.
///
/// ```
/// machine  MemAvailable of /proc/meminfo
/// group    limit - (usage - pages of files), for the process's memory group and each one above it
/// ```
///
/// The least of these. Pages of files that are there already count as available: they are what is asked about.
/// Files that are absent, as outside Linux, say nothing. What cannot be read, as where too many files are open, is
/// what it was when it last could. Thread-safe.
public final class LinuxFileMemory implements FileMemory {
    private static final long KIB = 1024;
    /// Of `/proc/self/stat`, counted behind the name's closing bracket: `majflt`.
    private static final int MAJOR_FAULTS_FIELD = 9;

    private static final byte[] AVAILABLE = KernelText.label("MemAvailable:");

    /// How a version of groups names its files.
    private record Naming(Path mount, List<String> limits, String usage, String filesPrefix) {}

    /// The files of one group.
    private static final class Group {
        final List<File> limits;
        final File usage;
        final File stat;
        final byte[] active;
        final byte[] inactive;
        /// What the group had available at the last look that could be made.
        long available = KernelText.NONE;

        Group(Naming naming, Path directory) {
            limits = naming.limits.stream()
                    .map(name -> directory.resolve(name).toFile())
                    .toList();
            usage = directory.resolve(naming.usage).toFile();
            stat = directory.resolve("memory.stat").toFile();
            active = KernelText.label(naming.filesPrefix + "active_file ");
            inactive = KernelText.label(naming.filesPrefix + "inactive_file ");
        }
    }

    private final File memory;
    private final File faults;
    private final File membership;
    private final Naming version1;
    private final Naming version2;
    private final KernelText text = new KernelText();
    /// What `membership` said when `groups` were made.
    private byte[] member = {};
    private List<Group> groups = List.of();
    /// What the machine last told.
    private long ofMachine = KernelText.NONE;
    private long majorFaults;

    public LinuxFileMemory() {
        this(Path.of("/"));
    }

    /// @param root of the file system that has `/proc` and `/sys`
    public LinuxFileMemory(Path root) {
        memory = root.resolve("proc/meminfo").toFile();
        faults = root.resolve("proc/self/stat").toFile();
        membership = root.resolve("proc/self/cgroup").toFile();
        Path mount = root.resolve("sys/fs/cgroup");
        version1 = new Naming(
                mount.resolve("memory"), List.of("memory.limit_in_bytes"), "memory.usage_in_bytes", "total_");
        version2 = new Naming(mount, List.of("memory.max", "memory.high"), "memory.current", "");
    }

    @Override
    public synchronized long availableBytes() {
        lookAtMachine();
        if (!text.read(membership).isEmpty() && !text.is(member)) { // seldom: a process is moved to another group
            member = text.bytes();
            groups = groups(new String(member, StandardCharsets.UTF_8));
        }
        long available = ofMachine;
        for (int i = 0; i < groups.size(); i++) {
            lookAt(groups.get(i));
            available = Math.min(available, groups.get(i).available);
        }
        return available;
    }

    private void lookAtMachine() {
        long available = text.read(memory).numberBehind(AVAILABLE);
        if (available != KernelText.NONE) {
            ofMachine = available * KIB;
        }
    }

    /// The process's groups and those above them.
    private List<Group> groups(String membership) {
        List<Group> found = new ArrayList<>();
        for (String line : membership.lines().toList()) {
            String[] parts = line.split(":", 3); // number:controllers:path
            if (parts.length == 3 && parts[1].isEmpty()) {
                add(version2, parts[2], found);
            } else if (parts.length == 3 && List.of(parts[1].split(",")).contains("memory")) {
                add(version1, parts[2], found);
            }
        }
        return found;
    }

    /// Inside a container the path may be that of the host: then the mount itself is the process's group.
    private static void add(Naming naming, String path, List<Group> found) {
        Path leaf =
                naming.mount.resolve(path.substring(Math.min(1, path.length()))).normalize();
        if (!leaf.startsWith(naming.mount)) {
            leaf = naming.mount;
        }
        for (Path at = leaf; at != null && at.startsWith(naming.mount); at = at.getParent()) {
            found.add(new Group(naming, at));
        }
    }

    private void lookAt(Group group) {
        long limit = KernelText.NONE;
        for (int i = 0; i < group.limits.size(); i++) {
            File file = group.limits.get(i);
            if (text.read(file).isEmpty() && file.exists()) {
                return;
            }
            limit = Math.min(limit, text.number()); // "max" is no number
        }
        if (limit == KernelText.NONE) {
            group.available = KernelText.NONE;
            return;
        }
        long usage = text.read(group.usage).number();
        if (usage == KernelText.NONE || text.read(group.stat).isEmpty() && group.stat.exists()) {
            return;
        }
        long files = orZero(text.numberBehind(group.active)) + orZero(text.numberBehind(group.inactive));
        group.available = Math.max(0, limit - Math.max(0, usage - files));
    }

    @Override
    public synchronized long majorFaults() {
        long count = text.read(faults).numberBehindBrackets(MAJOR_FAULTS_FIELD);
        if (count != KernelText.NONE) {
            majorFaults = count;
        }
        return majorFaults;
    }

    private static long orZero(long number) {
        return number == KernelText.NONE ? 0 : number;
    }
}
