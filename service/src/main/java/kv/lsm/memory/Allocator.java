package kv.lsm.memory;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.concurrent.atomic.AtomicLong;

/// Native memory of one store, counted, so that it can be bounded, shown and checked for leaks.
///
/// C's allocator and not an `Arena`: a buffer may be freed by another thread than the one that took it (a
/// cursor that moved between threads), and closing a shared arena would stop every thread of the process.
///
/// What is larger than [#KEPT_BYTES_MAX] goes back to the system as soon as it is freed. Glibc would raise that
/// limit to 32 MiB by and by, and keep for each thread as much as it ever had at one time.
public final class Allocator {
    private static final int KEPT_BYTES_MAX = 128 << 10;
    private static final int M_MMAP_THRESHOLD = -3;

    /// Alignment of [#allocateAligned]: a page, as direct I/O needs.
    public static final int PAGE_BYTES = 4096;

    private static final MethodHandle CALLOC =
            c("calloc", FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG));
    private static final MethodHandle ALIGNED_ALLOC = c(
            "aligned_alloc",
            FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG));
    private static final MethodHandle FREE = c("free", FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG));

    private final AtomicLong allocatedBytes = new AtomicLong();

    /// Bytes allocated and not yet freed.
    public long allocatedBytes() {
        return allocatedBytes.get();
    }

    /// The address of `bytes` zeroed bytes.
    public long allocate(long bytes) {
        try {
            return counted((long) CALLOC.invokeExact(1L, bytes), bytes);
        } catch (Throwable e) {
            throw rethrow(e);
        }
    }

    /// The address of `bytes` zeroed bytes that start on a page; `bytes` is a multiple of [#PAGE_BYTES].
    public long allocateAligned(long bytes) {
        try {
            long address = counted((long) ALIGNED_ALLOC.invokeExact((long) PAGE_BYTES, bytes), bytes);
            Memory.fill(address, bytes, (byte) 0);
            return address;
        } catch (Throwable e) {
            throw rethrow(e);
        }
    }

    /// Gives back what an allocation of `bytes` returned as `address`.
    public void free(long address, long bytes) {
        try {
            FREE.invokeExact(address);
        } catch (Throwable e) {
            throw rethrow(e);
        }
        allocatedBytes.addAndGet(-bytes);
    }

    private long counted(long address, long bytes) {
        if (address == 0) {
            throw new OutOfMemoryError("native memory: bytes=" + bytes + ", allocated=" + allocatedBytes.get());
        }
        allocatedBytes.addAndGet(bytes);
        return address;
    }

    static {
        // where there is no mallopt, C's allocator is not glibc's
        Linker.nativeLinker().defaultLookup().find("mallopt").ifPresent(address -> {
            FunctionDescriptor mallopt =
                    FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT);
            try {
                int unused = (int) Linker.nativeLinker()
                        .downcallHandle(address, mallopt)
                        .invokeExact(M_MMAP_THRESHOLD, KEPT_BYTES_MAX);
            } catch (Throwable e) {
                throw rethrow(e);
            }
        });
    }

    private static MethodHandle c(String name, FunctionDescriptor descriptor) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor);
    }

    private static Error rethrow(Throwable e) {
        if (e instanceof Error error) {
            throw error;
        }
        throw new AssertionError("a C library call threw", e);
    }
}
