package kv.http;

import java.util.function.Consumer;

/// How the HTTP side of the service runs.
///
/// @param host address to bind to
/// @param port 0 picks a free one
/// @param handler which threads run requests
/// @param selectors threads that hold connections
/// @param workers [HandlerKind#WORKERS]: threads; [HandlerKind#VIRTUAL]: requests that run at the same time
/// @param queue requests that may wait for a worker before new ones are answered 503
/// @param valueBytesMax larger values are answered 413
/// @param connectionsMax further connections are closed at once
/// @param idleTimeoutMillis a connection that says nothing, or takes nothing of its answer, for so long is
/// closed
/// @param requestTimeoutMillis time from the first to the last byte of a request
/// @param answerTimeoutMillis time in which a client takes the whole of an answer, of a range too
/// @param operations what those who run the service ask of it
public record HttpOptions(
        String host,
        int port,
        HandlerKind handler,
        int selectors,
        int workers,
        int queue,
        int valueBytesMax,
        int connectionsMax,
        int idleTimeoutMillis,
        int requestTimeoutMillis,
        int answerTimeoutMillis,
        Operations operations) {

    public enum HandlerKind {
        SELECTOR,
        WORKERS,
        VIRTUAL
    }

    /// The defaults on a free port, but with a selector per processor.
    public static HttpOptions onFreePort() {
        int processors = Runtime.getRuntime().availableProcessors();
        return new HttpOptions(
                "127.0.0.1",
                0,
                HandlerKind.SELECTOR,
                processors,
                2 * processors,
                1024,
                1 << 20,
                10_000,
                60_000,
                30_000,
                60_000,
                Operations.DEFAULTS);
    }

    public HttpOptions withSelectors(int newSelectors) {
        return change(builder -> builder.selectors = newSelectors);
    }

    public HttpOptions withPort(int newPort) {
        return change(builder -> builder.port = newPort);
    }

    public HttpOptions withHandler(HandlerKind newHandler, int newWorkers, int newQueue) {
        return change(builder -> {
            builder.handler = newHandler;
            builder.workers = newWorkers;
            builder.queue = newQueue;
        });
    }

    public HttpOptions withTimeouts(int newIdleTimeoutMillis, int newRequestTimeoutMillis) {
        return change(builder -> {
            builder.idleTimeoutMillis = newIdleTimeoutMillis;
            builder.requestTimeoutMillis = newRequestTimeoutMillis;
        });
    }

    public HttpOptions withLimits(int newValueBytesMax, int newConnectionsMax) {
        return change(builder -> {
            builder.valueBytesMax = newValueBytesMax;
            builder.connectionsMax = newConnectionsMax;
        });
    }

    public HttpOptions withAnswerTimeout(int newAnswerTimeoutMillis) {
        return change(builder -> builder.answerTimeoutMillis = newAnswerTimeoutMillis);
    }

    public HttpOptions withOperations(Operations newOperations) {
        return change(builder -> builder.operations = newOperations);
    }

    private HttpOptions change(Consumer<Builder> change) {
        Builder builder = new Builder(this);
        change.accept(builder);
        return builder.build();
    }

    /// A copy that is being changed.
    private static final class Builder {
        private final String host;
        private int port;
        private HandlerKind handler;
        private int selectors;
        private int workers;
        private int queue;
        private int valueBytesMax;
        private int connectionsMax;
        private int idleTimeoutMillis;
        private int requestTimeoutMillis;
        private int answerTimeoutMillis;
        private Operations operations;

        Builder(HttpOptions o) {
            host = o.host;
            port = o.port;
            handler = o.handler;
            selectors = o.selectors;
            workers = o.workers;
            queue = o.queue;
            valueBytesMax = o.valueBytesMax;
            connectionsMax = o.connectionsMax;
            idleTimeoutMillis = o.idleTimeoutMillis;
            requestTimeoutMillis = o.requestTimeoutMillis;
            answerTimeoutMillis = o.answerTimeoutMillis;
            operations = o.operations;
        }

        HttpOptions build() {
            return new HttpOptions(
                    host,
                    port,
                    handler,
                    selectors,
                    workers,
                    queue,
                    valueBytesMax,
                    connectionsMax,
                    idleTimeoutMillis,
                    requestTimeoutMillis,
                    answerTimeoutMillis,
                    operations);
        }
    }
}
