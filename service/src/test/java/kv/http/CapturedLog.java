package kv.http;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.spi.LocationAwareLogger;

/// What a class logs of errors while this is open. Else tests log nothing of this package.
final class CapturedLog implements AutoCloseable {
    private final Logger logger;
    private final int levelBefore;
    private final PrintStream errBefore = System.err;
    private final ByteArrayOutputStream log = new ByteArrayOutputStream();

    CapturedLog(Class<?> of) throws ReflectiveOperationException {
        logger = LoggerFactory.getLogger(of);
        levelBefore = level().getInt(logger);
        level().setInt(logger, LocationAwareLogger.ERROR_INT);
        System.setErr(new PrintStream(log, true));
    }

    private Field level() throws ReflectiveOperationException {
        Field field = logger.getClass().getDeclaredField("currentLogLevel");
        field.setAccessible(true);
        return field;
    }

    List<String> lines() {
        return log.toString().lines().toList();
    }

    @Override
    public void close() throws ReflectiveOperationException {
        System.setErr(errBefore);
        level().setInt(logger, levelBefore);
    }
}
