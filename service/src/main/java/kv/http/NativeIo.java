package kv.http;

import one.nio.net.Socket;

/// Which of one-nio's two I/O implementations runs. Its native one needs Linux on 64 bits and glibc 2.38; where
/// that is missing one-nio logs an error with a stack trace and goes on with Java NIO. The line is silenced
/// (simplelogger.properties) and said in other words here, because nothing is wrong and a study must know which
/// one ran.
final class NativeIo {
    private NativeIo() {}

    /// `native` or `java`, a label in metrics.
    static String label() {
        return Socket.USE_NATIVE_SOCKET ? "native" : "java";
    }

    static String describe() {
        return Socket.USE_NATIVE_SOCKET
                ? "I/O: one-nio's native sockets"
                : "I/O: Java NIO" + (SocketCalls.available() ? ", send and recv called directly" : "")
                        + " (one-nio's native library, which needs Linux with glibc 2.38 or newer, is not "
                        + "used; no loss)";
    }
}
