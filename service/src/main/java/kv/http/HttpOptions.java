package kv.http;

/// How the HTTP side of the service runs.
///
/// @param host                 address to bind to
/// @param port                 0 picks a free one
/// @param handler              which threads run requests
/// @param selectors            threads that hold connections
/// @param workers              [HandlerKind#WORKERS]: threads; [HandlerKind#VIRTUAL]: requests that run at the same time
/// @param queue                requests that may wait for a worker before new ones are answered 503
/// @param valueBytesMax        larger values are answered 413
/// @param connectionsMax       further connections are closed at once
/// @param idleTimeoutMillis    a connection that says nothing, or takes nothing of its answer, for so long is closed
/// @param requestTimeoutMillis time from the first to the last byte of a request
/// @param answerTimeoutMillis  time in which a client takes the whole of an answer, of a range too
/// @param operations           what those who run the service ask of it
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

    /// With [Operations#DEFAULTS].
    public HttpOptions(
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
            int answerTimeoutMillis) {
        this(
                host, port, handler, selectors, workers, queue, valueBytesMax, connectionsMax, idleTimeoutMillis,
                requestTimeoutMillis, answerTimeoutMillis, Operations.DEFAULTS);
    }

    public enum HandlerKind { SELECTOR, WORKERS, VIRTUAL }

    /// The defaults on a free port, but with a selector per processor.
    public static HttpOptions onFreePort() {
        int processors = Runtime.getRuntime().availableProcessors();
        return new HttpOptions(
                "127.0.0.1", 0, HandlerKind.SELECTOR, processors, 2 * processors, 1024, 1 << 20, 10_000, 60_000, 30_000, 60_000);
    }

    public HttpOptions withSelectors(int newSelectors) {
        return new HttpOptions(
                host, port, handler, newSelectors, workers, queue, valueBytesMax, connectionsMax, idleTimeoutMillis,
                requestTimeoutMillis, answerTimeoutMillis, operations);
    }

    public HttpOptions withPort(int newPort) {
        return new HttpOptions(
                host, newPort, handler, selectors, workers, queue, valueBytesMax, connectionsMax, idleTimeoutMillis,
                requestTimeoutMillis, answerTimeoutMillis, operations);
    }

    public HttpOptions withHandler(HandlerKind newHandler, int newWorkers, int newQueue) {
        return new HttpOptions(
                host, port, newHandler, selectors, newWorkers, newQueue, valueBytesMax, connectionsMax, idleTimeoutMillis,
                requestTimeoutMillis, answerTimeoutMillis, operations);
    }

    public HttpOptions withTimeouts(int newIdleTimeoutMillis, int newRequestTimeoutMillis) {
        return new HttpOptions(
                host, port, handler, selectors, workers, queue, valueBytesMax, connectionsMax, newIdleTimeoutMillis,
                newRequestTimeoutMillis, answerTimeoutMillis, operations);
    }

    public HttpOptions withLimits(int newValueBytesMax, int newConnectionsMax) {
        return new HttpOptions(
                host, port, handler, selectors, workers, queue, newValueBytesMax, newConnectionsMax, idleTimeoutMillis,
                requestTimeoutMillis, answerTimeoutMillis, operations);
    }

    public HttpOptions withAnswerTimeout(int newAnswerTimeoutMillis) {
        return new HttpOptions(
                host, port, handler, selectors, workers, queue, valueBytesMax, connectionsMax, idleTimeoutMillis,
                requestTimeoutMillis, newAnswerTimeoutMillis, operations);
    }

    public HttpOptions withOperations(Operations newOperations) {
        return new HttpOptions(
                host, port, handler, selectors, workers, queue, valueBytesMax, connectionsMax, idleTimeoutMillis,
                requestTimeoutMillis, answerTimeoutMillis, newOperations);
    }
}
