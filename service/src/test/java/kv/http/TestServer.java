package kv.http;

import java.io.IOException;
import kv.lsm.Store;

/// A server on a free port in front of a store, for one test.
final class TestServer implements AutoCloseable {
    final KvServer server;
    final Store store;

    TestServer(Store store) throws IOException {
        this(store, HttpOptions.onFreePort());
    }

    TestServer(Store store, HttpOptions options) throws IOException {
        this.store = store;
        this.server = KvServer.bind(options);
        server.serve(store);
    }

    RawClient connect() throws IOException {
        return new RawClient(server.port());
    }

    /// A client that takes few bytes before it reads.
    RawClient connectWithBuffer(int receiveBytes) throws IOException {
        return new RawClient(server.port(), receiveBytes);
    }

    RawClient.Reply ask(String bytes) throws IOException {
        try (RawClient client = connect()) {
            return client.ask(bytes);
        }
    }

    @Override
    public void close() {
        server.stopInOrder();
        store.close();
    }
}
