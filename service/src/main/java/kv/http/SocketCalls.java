package kv.http;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.reflect.Method;
import one.nio.net.SelectableJavaSocket;
import one.nio.net.Socket;

/// `send` and `recv` of the C library on the descriptor of a connection, from and to arrays: a Java channel takes four locks and copies
/// through a buffer of its own for each.
///
/// 1. Neither waits. What a call does not do, because it would have to wait or because something is wrong, is left to one-nio, which tells
///    the error: a negative result means no more than that.
/// 2. A descriptor is a number that the system gives to another connection once the channel is closed. Callers hold what keeps the
///    connection from being closed, and have seen it open.
/// 3. Works on Linux with Java NIO's sockets if `java.base` opens `sun.nio.ch` to us, as the jar's manifest asks for; elsewhere no
///    connection has a descriptor.
final class SocketCalls {
    /// Of a connection whose calls go through one-nio.
    static final int NO_DESCRIPTOR = -1;

    private static final int MSG_DONTWAIT = 0x40;
    private static final int MSG_NOSIGNAL = 0x4000;
    private static final MethodHandle DESCRIPTOR_OR_NULL = descriptorGetter();
    private static final MethodHandle SEND = call("send");
    private static final MethodHandle RECV = call("recv");

    private SocketCalls() {}

    /// True when connections have descriptors.
    static boolean available() {
        return DESCRIPTOR_OR_NULL != null && !Socket.USE_NATIVE_SOCKET;
    }

    static int descriptorOf(Socket socket) {
        if (DESCRIPTOR_OR_NULL == null || !(socket instanceof SelectableJavaSocket java)) {
            return NO_DESCRIPTOR;
        }
        try {
            return (int) DESCRIPTOR_OR_NULL.invoke(java.getSelectableChannel());
        } catch (Throwable e) {
            throw new AssertionError("a channel did not tell its descriptor", e);
        }
    }

    /// How many of the first `length` bytes the socket took, or a negative number when it took none.
    static int send(int descriptor, byte[] bytes, int length) {
        try {
            return (int) (long) SEND.invokeExact(descriptor, MemorySegment.ofArray(bytes), (long) length, MSG_DONTWAIT | MSG_NOSIGNAL);
        } catch (Throwable e) {
            throw new AssertionError("send threw", e);
        }
    }

    /// How many bytes came into `[from, from + count)` of `buffer`; 0 when the other side sends no more, negative when there are none.
    static int receive(int descriptor, byte[] buffer, int from, int count) {
        try {
            MemorySegment room = MemorySegment.ofArray(buffer).asSlice(from, count);
            return (int) (long) RECV.invokeExact(descriptor, room, (long) count, MSG_DONTWAIT);
        } catch (Throwable e) {
            throw new AssertionError("recv threw", e);
        }
    }

    /// Critical: the thread stays in Java, so no collection can move the array meanwhile.
    private static MethodHandle call(String name) {
        Linker linker = Linker.nativeLinker();
        FunctionDescriptor descriptor = FunctionDescriptor.of(
                ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT);
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor, Linker.Option.critical(true));
    }

    private static MethodHandle descriptorGetter() {
        if (!System.getProperty("os.name").equals("Linux")) {
            return null; // the flags have other values
        }
        try {
            Method getter = Class.forName("sun.nio.ch.SelChImpl").getMethod("getFDVal");
            getter.setAccessible(true);
            return MethodHandles.lookup().unreflect(getter);
        } catch (ReflectiveOperationException | RuntimeException e) { // not opened to us, or another JDK
            return null;
        }
    }
}
