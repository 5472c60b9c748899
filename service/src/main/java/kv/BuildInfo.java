package kv;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Properties;
import picocli.CommandLine.IVersionProvider;

/// What this jar was built from, as the build wrote it down.
///
/// @param version of the service
/// @param revision of the last commit that changed `service/`, with `-dirty` when files differed from it;
/// `unknown` without git
public record BuildInfo(String version, String revision) {
    private static final String UNKNOWN = "unknown";

    static BuildInfo read() {
        Properties build = new Properties();
        try (InputStream file = BuildInfo.class.getResourceAsStream("build.properties")) {
            if (file != null) {
                build.load(file);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("the jar cannot be read", e);
        }
        String revision = build.getProperty("revision", "");
        boolean dirty = !build.getProperty("changes", "").isBlank();
        return new BuildInfo(
                build.getProperty("version", UNKNOWN),
                revision.isBlank() ? UNKNOWN : revision.strip() + (dirty ? "-dirty" : ""));
    }

    /// For `--version`.
    static final class Provider implements IVersionProvider {
        @Override
        public String[] getVersion() {
            BuildInfo build = read();
            return new String[] {
                "kv-service " + build.version + ", revision " + build.revision + ", Java " + Runtime.version()
            };
        }
    }
}
