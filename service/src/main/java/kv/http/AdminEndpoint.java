package kv.http;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.function.BooleanSupplier;
import kv.lsm.Administration;
import kv.lsm.CheckpointException;
import kv.lsm.Store;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// `POST /v0/admin/…`: what an operator asks of the store. Runs on threads of its own, for it waits for flush
/// and compaction; each request is logged.
final class AdminEndpoint {
    static final int IDLE_MILLIS_DEFAULT = 60_000;
    private static final String TEXT = "text/plain; charset=utf-8";

    private static final Logger log = LoggerFactory.getLogger(AdminEndpoint.class);

    private final BooleanSupplier stopping;

    /// @param stopping true when requests that wait are to end
    AdminEndpoint(BooleanSupplier stopping) {
        this.stopping = stopping;
    }

    void answer(Store store, Request request, Output out) {
        Administration administration = store.administration();
        long start = System.nanoTime();
        Answer refusal = null;
        switch (request.target) {
            case ADMIN_FLUSH -> administration.flush(stopping);
            case ADMIN_COMPACT -> administration.compact(stopping);
            case ADMIN_CHECKPOINT -> refusal = checkpoint(administration, request);
            case ADMIN_IDLE -> {
                boolean idle = administration.awaitIdle(Duration.ofMillis(request.timeoutMillis), stopping);
                refusal = idle ? null : Answer.NOT_IDLE;
            }
            default -> refusal = Answer.ADMIN_UNKNOWN;
        }
        if (refusal != null) {
            out.answer(refusal, request);
            return;
        }
        String line =
                "done: request=%s, seconds=%.3f".formatted(name(request.target), (System.nanoTime() - start) / 1e9);
        log.info(line);
        out.text((line + "\n").getBytes(StandardCharsets.UTF_8), TEXT, request);
    }

    private Answer checkpoint(Administration administration, Request request) {
        try {
            Path directory = Path.of(StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(request.key))
                    .toString());
            if (!directory.isAbsolute()) {
                return Answer.DIR_MISSING;
            }
            administration.checkpoint(directory, stopping);
            return null;
        } catch (CharacterCodingException | InvalidPathException e) {
            return Answer.DIR_MISSING;
        } catch (CheckpointException e) {
            log.warn(e.getMessage());
            return switch (e.reason()) {
                case EXISTS -> Answer.DIR_EXISTS;
                case PARENT_MISSING -> Answer.DIR_PARENT_MISSING;
                case NOT_MADE -> Answer.DIR_NOT_MADE;
                case INSIDE_STORE -> Answer.DIR_INSIDE_STORE;
                case OTHER_FILE_SYSTEM -> Answer.DIR_OTHER_FILE_SYSTEM;
            };
        }
    }

    private static String name(Target target) {
        return target.name().substring("ADMIN_".length()).toLowerCase(java.util.Locale.ROOT);
    }
}
