package kv.empty;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.CountDownLatch;
import one.nio.http.HttpServer;
import one.nio.http.HttpServerConfig;
import one.nio.http.HttpSession;
import one.nio.http.Request;
import one.nio.http.Response;
import one.nio.net.Session;
import one.nio.net.Socket;
import one.nio.server.AcceptorConfig;
import sun.misc.Signal;

/// The limit to measure the service against: one-nio's own HTTP server with a handler that answers 200 and
/// nothing else, for every path and method, on the selector thread.
///
/// `java [-Dkv.empty.answerBytes=N] -jar empty-server.jar --port N [--selectors 1]`: to GET it answers so many
/// bytes, none unless it is told, as the service beside it gives values of a known size. The same `ready:` line
/// and exit code 0 on a signal as the service. New connections go to the selectors in turn, so they are spread
/// evenly while none is closed. The service gives each to the selector that then holds the fewest, which is the
/// same until one is closed.
///
/// It is a program of its own, with nothing of the service in its jar: a change of the service leaves it the
/// same program, so its runs of before and after that change are repeats of one another.
public final class EmptyServer extends HttpServer {
    private static final String HOST = "127.0.0.1";
    private static final int BODY_BYTES_MAX = 16 << 20;

    private final byte[] answer;
    private int nextSelector;

    private EmptyServer(HttpServerConfig config, int answerBytes) throws IOException {
        super(config);
        answer = answerBytes == 0 ? Response.EMPTY : new byte[answerBytes];
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        int wanted = number(args, "--port", 8080);
        int port = wanted == 0 ? freePort() : wanted;
        int selectors = number(args, "--selectors", 1);
        CountDownLatch stop = new CountDownLatch(1);
        for (String name : new String[] {"TERM", "INT"}) {
            Signal.handle(new Signal(name), signal -> stop.countDown());
        }
        AcceptorConfig acceptor = new AcceptorConfig();
        acceptor.address = HOST;
        acceptor.port = port;
        acceptor.backlog = 1024;
        HttpServerConfig config = new HttpServerConfig();
        config.acceptors = new AcceptorConfig[] {acceptor};
        config.selectors = selectors;
        EmptyServer server = new EmptyServer(config, Integer.getInteger("kv.empty.answerBytes", 0));
        server.start();
        System.out.println("ready: http://" + HOST + ":" + port);
        stop.await();
        server.stop();
        System.exit(0);
    }

    /// One-nio takes no port 0. Between the closing here and its own opening another process could take the
    /// port; it then says so.
    private static int freePort() throws IOException {
        try (ServerSocket probe = new ServerSocket(0, 1, InetAddress.getByName(HOST))) {
            return probe.getLocalPort();
        }
    }

    private static int number(String[] args, String option, int otherwise) {
        for (int i = 0; i + 1 < args.length; i += 2) {
            if (args[i].equals(option)) {
                return Integer.parseInt(args[i + 1]);
            }
        }
        return otherwise;
    }

    /// Called by the one accepting thread.
    @Override
    public void register(Session session, int acceptorIndex, int acceptorGroupSize) {
        selectors[nextSelector].selector.register(session);
        nextSelector = (nextSelector + 1) % selectors.length;
    }

    /// As one-nio's own, which refuses bodies over 64 KiB: the service takes larger values.
    @Override
    public HttpSession createSession(Socket socket) {
        return new HttpSession(socket, this) {
            @Override
            protected int getMaxRequestBodyLength() {
                return BODY_BYTES_MAX;
            }
        };
    }

    @Override
    public void handleRequest(Request request, HttpSession session) throws IOException {
        byte[] body = request.getMethod() == Request.METHOD_GET ? answer : Response.EMPTY;
        session.sendResponse(new Response(Response.OK, body));
    }
}
