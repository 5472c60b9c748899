package kv.lsm.disk;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/// How often a thread has waited for the disk in a page fault, as `getrusage` tells.
///
/// On Linux only; elsewhere, and with a C library that has no such call, nobody can tell. How long the thread
/// waited is not known: the system does not measure it as a rule.
///
/// @param thread of the system that counted; a virtual thread may go on on another one
/// @param count since that thread began
public record MajorFaults(long thread, long count) {
    private static final int RUSAGE_THREAD = 1;
    /// `struct rusage` on a 64-bit system: two times of two longs each, then fourteen longs.
    private static final int RUSAGE_LONGS = 18;

    private static final int MAJOR_FAULTS_AT = 9;

    private static final Calls CALLS_OR_NULL = linked();

    private record Calls(MethodHandle getrusage, MethodHandle self) {}

    private static Calls linked() {
        if (!System.getProperty("os.name").equals("Linux") || ValueLayout.ADDRESS.byteSize() != Long.BYTES) {
            return null; // the numbers above are Linux's
        }
        Linker linker = Linker.nativeLinker();
        try {
            return new Calls(
                    linker.downcallHandle(
                            linker.defaultLookup().findOrThrow("getrusage"),
                            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.ADDRESS),
                            Linker.Option.critical(true)), // under a microsecond: the thread need not leave Java
                    linker.downcallHandle(
                            linker.defaultLookup().findOrThrow("pthread_self"),
                            FunctionDescriptor.of(ValueLayout.JAVA_LONG),
                            Linker.Option.critical(false)));
        } catch (RuntimeException e) { // another C library, no access to it
            return null;
        }
    }

    /// The calling thread's, of a virtual one that of the thread which runs it; null when nobody can tell.
    public static MajorFaults ofThreadOrNull() {
        if (CALLS_OR_NULL == null) {
            return null;
        }
        long[] usage = new long[RUSAGE_LONGS];
        try {
            if ((int) CALLS_OR_NULL.getrusage().invokeExact(RUSAGE_THREAD, MemorySegment.ofArray(usage)) != 0) {
                return null;
            }
            return new MajorFaults((long) CALLS_OR_NULL.self().invokeExact(), usage[MAJOR_FAULTS_AT]);
        } catch (Throwable e) {
            throw new AssertionError("getrusage threw", e);
        }
    }
}
