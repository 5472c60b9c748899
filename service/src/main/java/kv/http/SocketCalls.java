package kv.http;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.reflect.Method;
import one.nio.net.SelectableJavaSocket;
import one.nio.net.Socket;

/// `send` and `recv` of the C library on the descriptor of a connection, from and to arrays: a Java channel
/// takes four locks and copies through a buffer of its own for each.
///
/// 1. Neither waits for the other side.
/// 2. A descriptor is a number that the system gives to another connection once the channel is closed. Callers
///    hold what keeps the connection from being closed, and have seen it open.
/// 3. Works on Linux with Java NIO's sockets if `java.base` opens `sun.nio.ch` to us, as the jar's manifest
///    asks for; elsewhere no connection has a descriptor, and one-nio's calls are used.
/// 4. The thread stays "in Java" during a call, so that no collection moves the array; one that waits for all
///    threads waits for the call too, some microseconds.
final class SocketCalls {
    /// Of a connection whose calls go through one-nio.
    static final int NO_DESCRIPTOR = -1;
    /// What [#receive] gives when nothing has come.
    static final int NOTHING_YET = -1;

    /// `-Dkv.socketCalls=false` has one-nio's calls used, to measure what these gain: `make
    /// bench-socket-calls`.
    private static final boolean WANTED = Boolean.parseBoolean(System.getProperty("kv.socketCalls", "true"));

    private static final int MSG_DONTWAIT = 0x40;
    private static final int MSG_MORE = 0x8000;
    private static final int MSG_NOSIGNAL = 0x4000;
    private static final int EAGAIN = 11;
    private static final SocketCalls CALLS_OR_NULL = linked();

    private final MethodHandle descriptor;
    private final MethodHandle send;
    private final MethodHandle recv;
    private final VarHandle errno;
    private final ThreadLocal<OfThread> ofThread = ThreadLocal.withInitial(OfThread::new);

    /// What the calls of one thread use again: segments of the arrays of its last calls, of which a selector has
    /// one to read into and one to write from. Making them took 150 bytes of each request's garbage.
    private static final class OfThread {
        /// A longer array, a large value, is not kept alive for the next call.
        private static final int ARRAY_BYTES_MAX = 64 << 10;

        final MemorySegment state = Arena.ofAuto().allocate(Linker.Option.captureStateLayout());
        private byte[] received;
        private MemorySegment receivedSegment;
        private byte[] sent;
        private MemorySegment sentSegment;

        MemorySegment toReceive(byte[] array) {
            if (array != received) {
                receivedSegment = MemorySegment.ofArray(array);
                received = array;
            }
            return receivedSegment;
        }

        MemorySegment toSend(byte[] array) {
            if (array.length > ARRAY_BYTES_MAX) {
                return MemorySegment.ofArray(array);
            }
            if (array != sent) {
                sentSegment = MemorySegment.ofArray(array);
                sent = array;
            }
            return sentSegment;
        }
    }

    private SocketCalls() throws ReflectiveOperationException {
        Method getter = Class.forName("sun.nio.ch.SelChImpl").getMethod("getFDVal");
        getter.setAccessible(true);
        descriptor = MethodHandles.lookup().unreflect(getter);
        send = call("send", Linker.Option.critical(true));
        recv = call("recv", Linker.Option.critical(true), Linker.Option.captureCallState("errno"));
        errno = Linker.Option.captureStateLayout().varHandle(PathElement.groupElement("errno"));
    }

    /// Null where connections have no descriptors.
    private static SocketCalls linked() {
        if (!WANTED) {
            return null;
        }
        if (!System.getProperty("os.name").equals("Linux") || Socket.USE_NATIVE_SOCKET) {
            return null; // the numbers above are Linux's
        }
        try {
            return new SocketCalls();
        } catch (ReflectiveOperationException | RuntimeException e) { // not opened to us, another JDK, no access to C
            return null;
        }
    }

    private static MethodHandle call(String name, Linker.Option... options) {
        Linker linker = Linker.nativeLinker();
        FunctionDescriptor signature = FunctionDescriptor.of(
                ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_INT,
                ValueLayout.ADDRESS,
                ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_INT);
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), signature, options);
    }

    /// True when connections have descriptors.
    static boolean available() {
        return CALLS_OR_NULL != null;
    }

    static int descriptorOf(Socket socket) {
        if (CALLS_OR_NULL == null || !(socket instanceof SelectableJavaSocket java)) {
            return NO_DESCRIPTOR;
        }
        try {
            return (int) CALLS_OR_NULL.descriptor.invoke(java.getSelectableChannel());
        } catch (Throwable e) {
            throw new AssertionError("a channel did not tell its descriptor", e);
        }
    }

    /// How many of `[from, from + count)` the socket took; negative when it took none, be it full or broken.
    ///
    /// @param more true when another call follows at once: the bytes may then wait for those to fill a packet
    static int send(int descriptor, byte[] bytes, int from, int count, boolean more) {
        // a virtual thread ends before it could use them again
        MemorySegment all = Thread.currentThread().isVirtual()
                ? MemorySegment.ofArray(bytes)
                : CALLS_OR_NULL.ofThread.get().toSend(bytes);
        MemorySegment part = from == 0 ? all : all.asSlice(from, count);
        int flags = more ? MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE : MSG_DONTWAIT | MSG_NOSIGNAL;
        try {
            return (int) (long) CALLS_OR_NULL.send.invokeExact(descriptor, part, (long) count, flags);
        } catch (Throwable e) {
            throw new AssertionError("send threw", e);
        }
    }

    /// How many bytes came into `[from, from + count)` of `buffer`; 0 when the other side sends no more, or
    /// [#NOTHING_YET].
    ///
    /// @throws IOException when the connection is broken; only the first call that meets that tells
    static int receive(int descriptor, byte[] buffer, int from, int count) throws IOException {
        OfThread ofThread = CALLS_OR_NULL.ofThread.get();
        MemorySegment all = ofThread.toReceive(buffer);
        MemorySegment room = from == 0 ? all : all.asSlice(from, count);
        MemorySegment callState = ofThread.state;
        long received;
        try {
            received = (long) CALLS_OR_NULL.recv.invokeExact(callState, descriptor, room, (long) count, MSG_DONTWAIT);
        } catch (Throwable e) {
            throw new AssertionError("recv threw", e);
        }
        if (received >= 0) {
            return (int) received;
        }
        int error = (int) CALLS_OR_NULL.errno.get(callState, 0L);
        if (error == EAGAIN) {
            return NOTHING_YET;
        }
        throw new IOException("recv failed: errno=" + error);
    }
}
