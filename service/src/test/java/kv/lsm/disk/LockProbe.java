package kv.lsm.disk;

import java.nio.file.Path;
import kv.lsm.memory.Allocator;

/// Another process that tries to take a lock.
final class LockProbe {
    private LockProbe() {}

    public static void main(String[] args) throws Exception {
        System.out.println(new RealDisk(new Allocator()).lock(Path.of(args[0])) == null ? "taken" : "free");
    }
}
