package kv.http;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import kv.lsm.Store;
import one.nio.net.Session;
import one.nio.net.Socket;
import one.nio.server.AcceptorConfig;
import one.nio.server.RejectedSessionException;
import one.nio.server.SelectorThread;
import one.nio.server.Server;
import one.nio.server.ServerConfig;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The service's HTTP server: one-nio's selectors and write queues around our own connections.
///
/// One-nio's `HttpServer` is not used: its request parser makes strings of everything, decodes keys wrongly and
/// knows no chunked request bodies (see [RequestKey], [RequestReader]).
///
/// ```java
/// KvServer server = KvServer.bind(options);   // accepts connections, answers 503
/// server.serve(store);                        // from now on 200
/// server.stopInOrder();                       // answers what it has accepted, then closes
/// ```
public final class KvServer extends Server {
    private static final Logger log = LoggerFactory.getLogger(KvServer.class);
    private static final int OUTPUT_BYTES = 64 << 10;
    private static final int QUIET_MILLIS = 200;
    /// For what waits for nothing, so that it waits behind nothing either.
    private static final Handler AT_ONCE = new Handler.Selector();

    private final HttpOptions options;
    private final MemoryBudget budget = MemoryBudget.ofHeap();
    private final ConnectionLimit connectionLimit;
    private final Connections connections;
    private final MemoryReclaimer reclaimer;
    private final Handler handler;
    private final Handler metricsHandler = Handler.ofMetrics();
    private final Handler adminHandler;
    private final Handler manyGetsHandler = Handler.ofManyGets();
    private final Handler batchHandler = Handler.ofBatches();
    private final Handler stalledWrites;
    private final Handler coldReads;
    private final HttpMetrics metrics;
    private final Router router;
    private final ThreadLocal<Output> outputs = ThreadLocal.withInitial(() -> new Output(OUTPUT_BYTES));
    private boolean stopped;

    /// @param listening to which clients connect; closed at the stop
    private KvServer(HttpOptions options, Socket listening) throws IOException {
        super(config(options));
        this.acceptor = new PatientAcceptor(this, listening);
        this.options = options;
        this.connectionLimit = ConnectionLimit.ofProcess(options.connectionsMax());
        this.connections = new Connections(options, connectionLimit);
        this.reclaimer = new MemoryReclaimer(budget, connections.open());
        this.handler = Handler.of(options);
        this.stalledWrites = Handler.ofStalledWrites(options.connectionsMax());
        this.coldReads = Handler.ofColdReads(options.connectionsMax());
        this.metrics = new HttpMetrics(this);
        this.router = new Router(metrics, options);
        this.adminHandler = options.operations().admin() ? Handler.ofAdmin() : AT_ONCE;
        for (SelectorThread thread : selectors) {
            RoundSelector.replaceSelectorOf(thread, this);
        }
    }

    /// Binds and starts a server that answers 503 until it has a store.
    ///
    /// @throws java.net.BindException when the port is in use, or the address is not ours
    public static KvServer bind(HttpOptions options) throws IOException {
        Socket listening = PatientAcceptor.listen(options.host(), options.port());
        try {
            int port = listening.getLocalAddress().getPort();
            KvServer server = new KvServer(options.withPort(port), listening);
            server.start();
            server.connections.start();
            server.reclaimer.start();
            log.info("{}, {} selectors, handler {}", NativeIo.describe(), options.selectors(), options.handler());
            return server;
        } catch (IOException | RuntimeException | Error e) {
            listening.close();
            throw e;
        }
    }

    private static ServerConfig config(HttpOptions options) {
        AcceptorConfig acceptor = new AcceptorConfig();
        acceptor.address = options.host();
        acceptor.port = options.port();
        acceptor.threads = 0; // ours takes its place
        ServerConfig config = new ServerConfig();
        config.acceptors = new AcceptorConfig[] {acceptor};
        config.selectors = options.selectors();
        return config;
    }

    public int port() {
        return port;
    }

    /// What `kv_build_info` in `/metrics` is to say, by label.
    public void describe(Map<String, String> labels) {
        metrics.describe(labels);
    }

    public void serve(Store store) {
        connectionLimit.leaveRoomFor(store::openTables);
        router.ready(store);
    }

    @Override
    public Session createSession(Socket socket) throws RejectedSessionException {
        KvSession session = new KvSession(
                socket,
                this,
                new RequestReader(
                        budget.account(),
                        options.valueBytesMax(),
                        options.operations().batchBytesMax()));
        if (router.isStopping() || !connections.add(session)) {
            throw new RejectedSessionException("too many connections");
        }
        return session;
    }

    @Override
    public void register(Session session, int acceptorIndex, int acceptorGroupSize) {
        selectors[connections.place((KvSession) session)].selector.register(session);
    }

    /// Accepts no more connections, answers the requests under way and those that connections still send within
    /// [#QUIET_MILLIS], and closes. What is not answered within [Operations#drainMillis], a write that waits for
    /// flush and compaction as well, is given up. Closing a store is left to the caller, afterwards.
    public synchronized void stopInOrder() {
        if (stopped) {
            return;
        }
        stopped = true;
        router.stopping();
        acceptor.shutdown();
        long start = MonotonicClock.millis();
        try {
            while (connections.size() > 0 && MonotonicClock.millis() - start < QUIET_MILLIS) {
                Thread.sleep(5);
            }
            while (!connections.closeQuiet(QUIET_MILLIS)
                    && MonotonicClock.millis() - start < options.operations().drainMillis()) {
                Thread.sleep(5);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        Handler.endAll(
                List.of(handler, stalledWrites, coldReads, metricsHandler, manyGetsHandler, batchHandler, adminHandler),
                start + options.operations().drainMillis());
        reclaimer.close();
        connections.close();
        stop();
        router.stopped();
    }

    /// The calling thread's own output, for use on selector threads only: they are few and each passes its
    /// answers on before it takes the next connection.
    Output output() {
        Output output = outputs.get();
        output.clear();
        return output;
    }

    HttpOptions options() {
        return options;
    }

    MemoryBudget budget() {
        return budget;
    }

    MemoryReclaimer reclaimer() {
        return reclaimer;
    }

    Connections connections() {
        return connections;
    }

    Handler handler() {
        return handler;
    }

    /// Where writes wait for flush and compaction, or for the disk where no round does, at most one of each connection.
    Handler stalledWrites() {
        return stalledWrites;
    }

    /// Where GETs wait for the disk, at most one of each connection.
    Handler coldReads() {
        return coldReads;
    }

    /// Who reads the slices of a range that a client takes: not the selectors while that waits for the disk.
    Handler handlerOfRanges() {
        return handler.isInline() && router.readsWaitForDisk() ? coldReads : handler;
    }

    /// Metrics are asked for so rarely that they are never compiled and take milliseconds: not on a thread that
    /// others wait for. Who asks whether the process lives and is ready is answered however many requests wait.
    Handler handlerOf(Request request) {
        return switch (request.target) {
            case ENTITY, OTHER -> handler;
            case ENTITIES -> handlerOfRanges();
            case ENTITIES_GET -> manyGetsHandler;
            case ENTITIES_BATCH -> batchHandler;
            case STATUS, READY, LIVE -> AT_ONCE;
            case METRICS -> metricsHandler;
            case ADMIN_FLUSH, ADMIN_COMPACT, ADMIN_CHECKPOINT, ADMIN_IDLE, ADMIN_OTHER -> adminHandler;
        };
    }

    Router router() {
        return router;
    }
}
