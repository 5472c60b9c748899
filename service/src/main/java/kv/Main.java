package kv;

import java.io.IOException;
import java.io.PrintStream;
import java.net.BindException;
import java.net.UnknownHostException;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import kv.cache.CachedStore;
import kv.http.HttpOptions;
import kv.http.KvServer;
import kv.lsm.LsmStore;
import kv.lsm.Store;
import kv.lsm.StoreException;
import kv.lsm.StoreOptions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import picocli.CommandLine;
import picocli.CommandLine.ParameterException;
import sun.misc.Signal;

/// Starts and stops the service: arguments → options → server → store → `ready:` → signal → server → store.
///
/// The server is bound first, so that a port in use is reported before a large store is opened, and answers 503
/// until the store is there. It stops first too: what it accepted is answered, and the store then makes it
/// durable.
public final class Main {
    private static final Logger log = LoggerFactory.getLogger(Main.class);
    private static final int EXIT_IN_ORDER = 0;
    private static final int EXIT_FAILED = 1;
    private static final int EXIT_BAD_ARGUMENTS = 2;

    private Main() {}

    public static void main(String[] args) {
        // the store logs through the platform's logger: one line per event, as everything else
        System.setProperty("java.util.logging.SimpleFormatter.format", "%1$tFT%1$tT.%1$tL %4$s %3$s - %5$s%6$s%n");
        loadLogging();
        Thread.setDefaultUncaughtExceptionHandler(Main::dieWith);
        System.exit(run(args, System.out, System.err));
    }

    /// The first line reads files of the JDK. When none can be opened any more is when the store has something to
    /// say, and a formatter that failed once fails for ever.
    private static void loadLogging() {
        for (Handler handler : java.util.logging.Logger.getLogger("").getHandlers()) {
            handler.getFormatter().format(new LogRecord(Level.INFO, "loaded"));
        }
    }

    /// A selector or a store thread that died would leave a service that accepts requests and does not serve
    /// them. What was acknowledged is safe: that is what the write-ahead log is for.
    private static void dieWith(Thread thread, Throwable error) {
        try {
            log.error("the service ends, a thread died: {}", thread.getName(), error);
        } finally {
            Runtime.getRuntime().halt(EXIT_FAILED);
        }
    }

    /// Runs until a signal comes; the exit code.
    static int run(String[] args, PrintStream out, PrintStream err) {
        Arguments arguments = new Arguments();
        CommandLine commandLine = new CommandLine(arguments)
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setExpandAtFiles(false);
        HttpOptions http;
        StoreOptions options;
        try {
            commandLine.parseArgs(args);
            Arguments.requireEachOnce(args);
            if (arguments.help) {
                commandLine.usage(out);
                return EXIT_IN_ORDER;
            }
            if (arguments.version) {
                commandLine.printVersionHelp(out);
                return EXIT_IN_ORDER;
            }
            http = arguments.http();
            options = arguments.store();
        } catch (ParameterException | IllegalArgumentException e) {
            err.println("kv-service: " + firstLine(e) + " (--help lists all options)");
            return EXIT_BAD_ARGUMENTS;
        }
        try {
            serve(
                    http,
                    options,
                    arguments.cacheEntries(),
                    arguments.cacheBytes(),
                    EffectiveOptions.labels(commandLine, http, arguments.cacheBytes()),
                    out);
            return EXIT_IN_ORDER;
        } catch (BindException e) {
            err.println("kv-service: cannot bind: host=" + http.host() + ", port=" + http.port() + ", reason="
                    + e.getMessage() + " (choose another with --port, or 0 for a free one)");
        } catch (UnknownHostException e) {
            err.println("kv-service: unknown address: --host=" + http.host());
        } catch (StoreException | IOException e) {
            log.debug("cannot run", e);
            err.println("kv-service: " + firstLine(e));
        } catch (RuntimeException | Error e) {
            err.println("kv-service: unexpected error: " + e);
            e.printStackTrace(err);
        }
        return EXIT_FAILED;
    }

    private static void serve(
            HttpOptions http,
            StoreOptions options,
            long cacheEntries,
            long cacheBytes,
            Map<String, String> build,
            PrintStream out)
            throws IOException {
        CountDownLatch stop = new CountDownLatch(1);
        // Not a shutdown hook: after one the JVM exits with 143, and hooks run beside each other, so that a
        // recording could be written before the last request is served.
        for (String name : new String[] {"TERM", "INT"}) {
            Signal.handle(new Signal(name), signal -> {
                log.info("SIG{}: stopping", signal.getName());
                stop.countDown();
            });
        }
        KvServer server = KvServer.bind(http);
        server.describe(build);
        try (Store store = open(options, cacheEntries, cacheBytes);
                CounterEvents counters = new CounterEvents(store)) {
            if (stop.getCount() > 0) {
                server.serve(store);
                out.println("ready: " + url(http.host(), server.port()));
                out.flush();
            }
            stop.await();
            server.stopInOrder();
            log.info("closing the store");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            server.stopInOrder();
        }
        log.info("stopped");
    }

    /// With brackets around an address of IPv6.
    static String url(String host, int port) {
        return "http://" + (host.contains(":") && !host.startsWith("[") ? "[" + host + "]" : host) + ":" + port;
    }

    private static Store open(StoreOptions options, long cacheEntries, long cacheBytes) {
        log.info("opening the store: {}", options);
        Store store = LsmStore.open(options);
        log.info("store opened: {}", store.metrics().recovery());
        return cacheEntries == 0 ? store : new CachedStore(store, cacheEntries, cacheBytes);
    }

    private static String firstLine(Exception e) {
        String message = e.getMessage() == null ? e.toString() : e.getMessage();
        String line = message.lines().findFirst().orElse(message);
        return line.isEmpty() ? line : Character.toLowerCase(line.charAt(0)) + line.substring(1);
    }
}
