package kv.lsm.disk;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import kv.lsm.TimeSlices;
import kv.lsm.memory.Allocator;

/// What the system holds of files in memory, and hints to it: `mincore`, `madvise`, `posix_fadvise` and
/// `sync_file_range`.
///
/// 1. On Linux only. Elsewhere, and where a sandbox refuses a call, every page is taken to be in memory and a
///    hint does nothing: reads then wait in page faults, as they would without this class.
/// 2. Linux tells the truth about a file's pages only to who owns the file or may write it; to others, all are
///    in memory.
/// 3. A page that is there may be gone when it is read: an answer is a forecast. Who goes by it waits seldom,
///    not never.
final class PageCache {
    private static final int MADV_NORMAL = 0;
    private static final int MADV_RANDOM = 1;
    private static final int POSIX_FADV_DONTNEED = 4;
    private static final int SYNC_FILE_RANGE_WRITE = 2;
    private static final int O_RDONLY_CLOEXEC = 0x8_0000;
    static final int NO_DESCRIPTOR = -1;
    /// As much is let go in one call, which has the processor to itself: a sixth of a millisecond.
    private static final long PIECE_BYTES = 2 << 20;
    /// As many are asked about in one call.
    private static final int PAGES_AT_ONCE = 64;

    private static final Calls CALLS_OR_NULL = linked();

    /// A record, because the compiler takes its fields for constants.
    private record Calls(
            MethodHandle mincore,
            MethodHandle madvise,
            MethodHandle open,
            MethodHandle fadvise,
            MethodHandle syncFileRange,
            MethodHandle close) {}

    private PageCache() {}

    /// Null where there are no such calls.
    private static Calls linked() {
        if (!System.getProperty("os.name").equals("Linux")) {
            return null; // the numbers above are Linux's
        }
        ValueLayout.OfInt number = ValueLayout.JAVA_INT;
        ValueLayout.OfLong size = ValueLayout.JAVA_LONG;
        try {
            return new Calls(
                    call(
                            "mincore",
                            FunctionDescriptor.of(number, size, size, ValueLayout.ADDRESS),
                            Linker.Option.critical(true)), // under a microsecond: the thread need not leave Java
                    call("madvise", FunctionDescriptor.of(number, size, size, number)),
                    call("open", FunctionDescriptor.of(number, ValueLayout.ADDRESS, number)),
                    call("posix_fadvise", FunctionDescriptor.of(number, number, size, size, number)),
                    call("sync_file_range", FunctionDescriptor.of(number, number, size, size, number)),
                    call("close", FunctionDescriptor.of(number, number)));
        } catch (RuntimeException e) { // another C library, no access to it
            return null;
        }
    }

    private static MethodHandle call(String name, FunctionDescriptor signature, Linker.Option... options) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), signature, options);
    }

    /// True when mapped memory can be read without waiting for the disk, or nobody can tell.
    static boolean holds(long address, long bytes) {
        if (CALLS_OR_NULL == null) {
            return true;
        }
        long first = address & -Allocator.PAGE_BYTES;
        long pages = (address + bytes - first + Allocator.PAGE_BYTES - 1) / Allocator.PAGE_BYTES;
        // of the heap: what belonged to a thread would be made anew for each request where each has its thread
        byte[] residency = new byte[(int) Math.min(pages, PAGES_AT_ONCE)];
        for (long done = 0; done < pages; done += PAGES_AT_ONCE) {
            int count = (int) Math.min(pages - done, PAGES_AT_ONCE);
            if (!holdsPages(first + done * Allocator.PAGE_BYTES, count, residency)) {
                return false;
            }
        }
        return true;
    }

    private static boolean holdsPages(long first, int count, byte[] residency) {
        long bytes = (long) count * Allocator.PAGE_BYTES;
        try {
            if ((int) CALLS_OR_NULL.mincore().invokeExact(first, bytes, MemorySegment.ofArray(residency)) != 0) {
                return true;
            }
        } catch (Throwable e) {
            throw new AssertionError("mincore threw", e);
        }
        for (int page = 0; page < count; page++) {
            if ((residency[page] & 1) == 0) {
                return false;
            }
        }
        return true;
    }

    /// Tells whether mapped memory will be read here and there, so that a fault is to bring one page, or in
    /// order, so that it is to bring what lies around, too.
    static void expectRandomReads(long address, long bytes, boolean random) {
        advise(address, bytes, random ? MADV_RANDOM : MADV_NORMAL);
    }

    private static void advise(long address, long bytes, int advice) {
        if (CALLS_OR_NULL == null) {
            return;
        }
        try {
            int ignored = (int) CALLS_OR_NULL.madvise().invokeExact(address, bytes, advice);
        } catch (Throwable e) {
            throw new AssertionError("madvise threw", e);
        }
    }

    /// Lets the system forget the pages of a file that are on the disk and mapped nowhere, and other threads work
    /// in between. Who closes the last descriptor of a deleted file would give all of them back at once, and the
    /// kernel does not interrupt that for a thread that wakes up: 6 ms for 32 MiB.
    ///
    /// @param descriptor from [#open]
    static void dropInPieces(int descriptor, long bytes) {
        if (descriptor == NO_DESCRIPTOR) {
            return;
        }
        for (long done = 0; done < bytes; done += PIECE_BYTES) {
            dropPart(descriptor, done, Math.min(bytes - done, PIECE_BYTES));
            TimeSlices.giveWay();
        }
    }

    /// Lets the system forget a file's pages that are on the disk.
    static void drop(Path file) {
        int descriptor = open(file);
        dropPart(descriptor, 0, 0);
        close(descriptor);
    }

    /// @param bytes 0 for all
    private static void dropPart(int descriptor, long position, long bytes) {
        if (descriptor == NO_DESCRIPTOR) {
            return;
        }
        try {
            int ignored = (int) CALLS_OR_NULL.fadvise().invokeExact(descriptor, position, bytes, POSIX_FADV_DONTNEED);
        } catch (Throwable e) {
            throw new AssertionError("posix_fadvise threw", e);
        }
    }

    /// A descriptor for hints, until [#close]. Those on a file that cannot be opened do nothing.
    static int open(Path file) {
        if (CALLS_OR_NULL == null) {
            return NO_DESCRIPTOR;
        }
        try (Arena arena = Arena.ofConfined()) {
            int opened = (int) CALLS_OR_NULL
                    .open()
                    .invokeExact(arena.allocateFrom(file.toAbsolutePath().toString()), O_RDONLY_CLOEXEC);
            return Math.max(opened, NO_DESCRIPTOR);
        } catch (Throwable e) {
            throw new AssertionError("open threw", e);
        }
    }

    /// Lets the system begin to write a part of a file to the disk; does not wait for it, and promises nothing.
    static void beginWriting(int descriptor, long position, long bytes) {
        if (descriptor == NO_DESCRIPTOR) {
            return;
        }
        try {
            int ignored =
                    (int) CALLS_OR_NULL.syncFileRange().invokeExact(descriptor, position, bytes, SYNC_FILE_RANGE_WRITE);
        } catch (Throwable e) {
            throw new AssertionError("sync_file_range threw", e);
        }
    }

    static void close(int descriptor) {
        if (descriptor == NO_DESCRIPTOR) {
            return;
        }
        try {
            int ignored = (int) CALLS_OR_NULL.close().invokeExact(descriptor);
        } catch (Throwable e) {
            throw new AssertionError("close threw", e);
        }
    }
}
