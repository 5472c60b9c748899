package kv.http;

import java.nio.charset.StandardCharsets;

/// What a path names.
enum Target {
    ENTITY("/v0/entity"),
    ENTITIES("/v0/entities"),
    ENTITIES_GET("/v0/entities/get"),
    ENTITIES_BATCH("/v0/entities/batch"),
    STATUS("/v0/status"),
    READY("/v0/ready"),
    LIVE("/v0/live"),
    METRICS("/metrics"),
    ADMIN_FLUSH("/v0/admin/flush"),
    ADMIN_COMPACT("/v0/admin/compact"),
    ADMIN_CHECKPOINT("/v0/admin/checkpoint"),
    ADMIN_IDLE("/v0/admin/idle"),
    /// any other path under this one
    ADMIN_OTHER("/v0/admin/"),
    OTHER("");

    private static final Target[] ALL = values();

    private final byte[] path;

    Target(String path) {
        this.path = Ascii.bytes(path);
    }

    /// The target of the path `[from, to)`.
    static Target of(byte[] b, int from, int to) {
        for (Target target : ALL) { // the most frequent one comes first
            if (Ascii.equal(b, from, to, target.path)) {
                return target == ADMIN_OTHER || target == OTHER ? OTHER : target;
            }
        }
        int prefix = ADMIN_OTHER.path.length;
        return to - from > prefix && Ascii.equal(b, from, from + prefix, ADMIN_OTHER.path) ? ADMIN_OTHER : OTHER;
    }

    /// As it is written in a request; of a path that names nothing `other`.
    String path() {
        return this == OTHER ? "other" : new String(path, StandardCharsets.US_ASCII);
    }

    /// Many keys in one request, framed in its body.
    boolean isBatch() {
        return this == ENTITIES_GET || this == ENTITIES_BATCH;
    }
}
