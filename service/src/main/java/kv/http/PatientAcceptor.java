package kv.http;

import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import one.nio.net.Socket;
import one.nio.server.AcceptorConfig;
import one.nio.server.RejectedSessionException;
import one.nio.server.acceptor.Acceptor;
import one.nio.server.acceptor.AcceptorSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Accepts connections and hands them to their [KvServer], in a thread of its own.
///
/// One-nio's acceptor tries again at once when that fails. At the limit of open files it fails until a file is
/// closed: a processor would do nothing else, and each try would add a stack trace to the log. This one waits
/// between two tries; who wants to connect waits in the backlog meanwhile.
final class PatientAcceptor implements Acceptor {
    private static final Logger log = LoggerFactory.getLogger(PatientAcceptor.class);
    private static final int BACKLOG = 1024;
    private static final long WAIT_MILLIS = 100;

    private final KvServer server;
    private final Socket listening;
    private final Thread thread = Thread.ofPlatform().name("NIO Acceptor").unstarted(this::run);
    private final CountDownLatch stopped = new CountDownLatch(1);
    private final Rarely logged = Rarely.onceAMinute();

    /// @param listening closed by [#shutdown]
    PatientAcceptor(KvServer server, Socket listening) {
        this.server = server;
        this.listening = listening;
    }

    /// A socket that clients can connect to; they are accepted later.
    ///
    /// @param port 0 takes a free one
    /// @throws java.net.BindException when the port is in use, or the address is not ours
    static Socket listen(String host, int port) throws IOException {
        Socket socket = AcceptorSupport.createServerSocket(new AcceptorConfig());
        try {
            socket.bind(host, port, BACKLOG);
            socket.listen(BACKLOG);
            return socket;
        } catch (IOException | RuntimeException e) {
            socket.close();
            throw e;
        }
    }

    private void run() {
        while (listening.isOpen()) {
            Socket accepted = null;
            try {
                accepted = listening.acceptNonBlocking();
                server.register(server.createSession(accepted), 0, 1);
            } catch (RejectedSessionException e) {
                accepted.close();
            } catch (Throwable e) { // without this thread nobody could connect any more
                if (accepted != null) {
                    accepted.close();
                }
                if (listening.isOpen()) {
                    if (logged.isDue()) {
                        log.warn("no connection can be accepted, it is tried again and again: {}", e.toString());
                    }
                    waitForNextTry();
                }
            }
        }
    }

    private void waitForNextTry() {
        try {
            boolean ignored = stopped.await(WAIT_MILLIS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            log.debug("interrupted, the next try comes at once");
        }
    }

    @Override
    public void start() {
        thread.start();
    }

    /// Clients could connect before [#start].
    @Override
    public void syncStart() {}

    @Override
    public void shutdown() {
        listening.close();
        stopped.countDown();
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void reconfigure(AcceptorConfig... configs) {
        throw new UnsupportedOperationException("the options of a server never change");
    }

    @Override
    public long getAcceptedSessions() {
        return server.connections().accepted();
    }

    @Override
    public long getRejectedSessions() {
        return server.connections().refused();
    }

    /// Counters of `/metrics` only grow.
    @Override
    public void resetCounters() {}

    @Override
    public int getSinglePort() {
        return server.port();
    }
}
