package kv;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/// Fails the test in which a thread died of an error that nobody caught: a failed assertion in a thread of the
/// test's own, or a thread of the store or the server. Registered for all tests.
public final class UncaughtErrors implements BeforeAllCallback, AfterEachCallback {
    private static final Queue<Throwable> ERRORS = new ConcurrentLinkedQueue<>();

    @Override
    public void beforeAll(ExtensionContext context) {
        Thread.setDefaultUncaughtExceptionHandler((thread, error) ->
                ERRORS.add(new AssertionError("a thread died: " + thread.getName() + ": " + error, error)));
    }

    @Override
    public void afterEach(ExtensionContext context) {
        Throwable first = ERRORS.poll();
        if (first != null) {
            for (Throwable more; (more = ERRORS.poll()) != null; ) {
                first.addSuppressed(more);
            }
            throw (AssertionError) first;
        }
    }
}
