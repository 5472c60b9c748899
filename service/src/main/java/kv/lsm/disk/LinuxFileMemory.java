package kv.lsm.disk;

import java.io.IOException;
import java.nio.file.Files;
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
/// Files that are absent, as outside Linux, say nothing.
public final class LinuxFileMemory implements FileMemory {
    private static final long KIB = 1024;
    /// Of `/proc/self/stat`, counted behind the name's closing bracket: `majflt`.
    private static final int MAJOR_FAULTS_FIELD = 9;

    private record Group(Path mount, List<String> limits, String usage, String filesPrefix) {}

    private final Path proc;
    private final Group version1;
    private final Group version2;

    public LinuxFileMemory() {
        this(Path.of("/"));
    }

    /// @param root of the file system that has `/proc` and `/sys`
    LinuxFileMemory(Path root) {
        proc = root.resolve("proc");
        Path groups = root.resolve("sys/fs/cgroup");
        version1 = new Group(
                groups.resolve("memory"), List.of("memory.limit_in_bytes"), "memory.usage_in_bytes", "total_");
        version2 = new Group(groups, List.of("memory.max", "memory.high"), "memory.current", "");
    }

    @Override
    public long availableBytes() {
        long available = ofMachine();
        for (String line : lines(proc.resolve("self/cgroup"))) {
            String[] parts = line.split(":", 3); // number:controllers:path
            if (parts.length == 3 && parts[1].isEmpty()) {
                available = Math.min(available, ofGroups(version2, parts[2]));
            } else if (parts.length == 3 && List.of(parts[1].split(",")).contains("memory")) {
                available = Math.min(available, ofGroups(version1, parts[2]));
            }
        }
        return available;
    }

    private long ofMachine() {
        for (String line : lines(proc.resolve("meminfo"))) {
            if (line.startsWith("MemAvailable:")) {
                return number(line.substring(line.indexOf(':') + 1).replace("kB", "")) * KIB;
            }
        }
        return Long.MAX_VALUE;
    }

    /// Inside a container the path may be that of the host: then the mount itself is the process's group.
    private static long ofGroups(Group group, String path) {
        Path leaf =
                group.mount.resolve(path.substring(Math.min(1, path.length()))).normalize();
        long available = Long.MAX_VALUE;
        for (Path directory : fromLeafToMount(leaf, group.mount)) {
            available = Math.min(available, ofGroup(group, directory));
        }
        return available;
    }

    private static List<Path> fromLeafToMount(Path leaf, Path mount) {
        List<Path> directories = new ArrayList<>();
        for (Path at = leaf; at != null && at.startsWith(mount); at = at.getParent()) {
            directories.add(at);
        }
        return directories.isEmpty() ? List.of(mount) : directories;
    }

    private static long ofGroup(Group group, Path directory) {
        List<String> usage = lines(directory.resolve(group.usage));
        long limit = Long.MAX_VALUE;
        for (String name : group.limits) {
            for (String line : lines(directory.resolve(name))) {
                limit = Math.min(limit, number(line)); // "max" is no number
            }
        }
        if (limit == Long.MAX_VALUE || usage.isEmpty()) {
            return Long.MAX_VALUE;
        }
        long files = 0;
        for (String line : lines(directory.resolve("memory.stat"))) {
            if (line.startsWith(group.filesPrefix + "active_file ")
                    || line.startsWith(group.filesPrefix + "inactive_file ")) {
                files += number(line.substring(line.indexOf(' ')));
            }
        }
        return Math.max(0, limit - Math.max(0, number(usage.getFirst()) - files));
    }

    @Override
    public long majorFaults() {
        List<String> lines = lines(proc.resolve("self/stat"));
        if (lines.isEmpty()) {
            return 0;
        }
        String line = lines.getFirst();
        String[] fields = line.substring(line.lastIndexOf(')') + 1).trim().split(" ");
        return fields.length > MAJOR_FAULTS_FIELD ? number(fields[MAJOR_FAULTS_FIELD]) : 0;
    }

    /// None of a file that cannot be read.
    private static List<String> lines(Path file) {
        try {
            return Files.readAllLines(file);
        } catch (IOException e) {
            return List.of();
        }
    }

    /// [Long#MAX_VALUE] for what is no number: it limits nothing then.
    private static long number(String text) {
        try {
            return Long.parseLong(text.trim());
        } catch (NumberFormatException e) {
            return Long.MAX_VALUE;
        }
    }
}
