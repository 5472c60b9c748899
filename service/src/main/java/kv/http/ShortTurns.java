package kv.http;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/// Asks the scheduler for short turns on a processor, so that a thread is let in soon after it wakes.
///
/// A thread that computes, as flush, compaction and the compiler do, keeps its processor for up to three ticks of
/// the scheduler, 12 ms, though others wake meanwhile ([kv.lsm.TimeSlices]). Since Linux 6.12 one that asked for a
/// shorter turn than the other's is let in at once: the turn is what its deadline is counted from. That takes
/// nothing from others in all, for the share stays the same, and needs no privilege. loadgen asks for the same.
///
/// 1. Older kernels ignore it, and where it is refused, or this is no Linux, all stays as it was.
/// 2. A thread that somebody gave another policy keeps that.
/// 3. Threads that the calling one starts have the usual turns: they may be those that compute. They would lose
///    a negative nice with it, so a thread that has one is left alone.
///
/// ```
/// struct sched_attr, first version, 48 bytes
///   0 size: u32    4 policy: u32    8 flags: u64    16 nice: i32    20 priority: u32    24 runtime: u64 (the turn,
///   in nanoseconds)    32 deadline: u64    40 period: u64
/// ```
final class ShortTurns {
    /// The shortest that the kernel gives.
    static final long TURN_NANOS = 100_000;
    /// What [#nanosOf] gives where nobody can tell.
    static final long UNKNOWN = -1;

    /// `-Dkv.shortTurns=false` leaves the usual turns to selectors: `make bench-short-turns` measures what short
    /// ones gain.
    private static final boolean WANTED = Boolean.parseBoolean(System.getProperty("kv.shortTurns", "true"));

    private static final long ATTRIBUTES_BYTES = 48;
    private static final long POLICY_AT = 4;
    private static final long FLAGS_AT = 8;
    private static final long NICE_AT = 16;
    private static final long RUNTIME_AT = 24;
    private static final int SCHED_OTHER = 0;
    private static final long RESET_ON_FORK = 1;
    private static final long CALLING_THREAD = 0;

    private static final Calls CALLS_OR_NULL = linked();

    /// The C library has names for these two calls only since 2025.
    private record Calls(MethodHandle syscall, long getNumber, long setNumber) {
        /// False when it is refused.
        boolean get(long thread, MemorySegment attributes) {
            return call(getNumber, thread, attributes, ATTRIBUTES_BYTES) == 0;
        }

        /// False when it is refused.
        boolean set(MemorySegment attributes) {
            return call(setNumber, CALLING_THREAD, attributes, 0) == 0;
        }

        /// @param third size of the attributes, or flags
        private long call(long number, long thread, MemorySegment attributes, long third) {
            try {
                return (long) syscall.invokeExact(number, thread, attributes, third, 0L);
            } catch (Throwable e) {
                throw new AssertionError("syscall threw", e);
            }
        }
    }

    private ShortTurns() {}

    private static Calls linked() {
        if (!System.getProperty("os.name").equals("Linux")) {
            return null;
        }
        Linker linker = Linker.nativeLinker();
        try {
            MethodHandle syscall = linker.downcallHandle(
                    linker.defaultLookup().findOrThrow("syscall"),
                    FunctionDescriptor.of(
                            ValueLayout.JAVA_LONG,
                            ValueLayout.JAVA_LONG,
                            ValueLayout.JAVA_LONG,
                            ValueLayout.ADDRESS,
                            ValueLayout.JAVA_LONG,
                            ValueLayout.JAVA_LONG),
                    Linker.Option.firstVariadicArg(1));
            return switch (System.getProperty("os.arch")) {
                case "amd64" -> new Calls(syscall, 315, 314);
                case "aarch64" -> new Calls(syscall, 275, 274);
                default -> null;
            };
        } catch (RuntimeException e) { // another C library, no access to it
            return null;
        }
    }

    /// From now on the calling thread, which is no virtual one, has short turns, where it may.
    static void askForCallingThread() {
        if (!WANTED || CALLS_OR_NULL == null) {
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment attributes = arena.allocate(ATTRIBUTES_BYTES, Long.BYTES);
            if (!CALLS_OR_NULL.get(CALLING_THREAD, attributes)
                    || attributes.get(ValueLayout.JAVA_INT, POLICY_AT) != SCHED_OTHER
                    || attributes.get(ValueLayout.JAVA_INT, NICE_AT) < 0) {
                return;
            }
            long flags = attributes.get(ValueLayout.JAVA_LONG, FLAGS_AT);
            attributes.set(ValueLayout.JAVA_INT, 0, (int) ATTRIBUTES_BYTES);
            attributes.set(ValueLayout.JAVA_LONG, FLAGS_AT, flags | RESET_ON_FORK);
            attributes.set(ValueLayout.JAVA_LONG, RUNTIME_AT, TURN_NANOS);
            boolean ignored = CALLS_OR_NULL.set(attributes);
        }
    }

    /// The turn of a thread of this process, in nanoseconds; 0 where the kernel does not tell it, or [#UNKNOWN].
    ///
    /// @param thread its number in the system, or 0 for the calling one
    static long nanosOf(long thread) {
        if (CALLS_OR_NULL == null) {
            return UNKNOWN;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment attributes = arena.allocate(ATTRIBUTES_BYTES, Long.BYTES);
            return CALLS_OR_NULL.get(thread, attributes) ? attributes.get(ValueLayout.JAVA_LONG, RUNTIME_AT) : UNKNOWN;
        }
    }
}
