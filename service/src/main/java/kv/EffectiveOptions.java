package kv;

import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import kv.http.HttpOptions;
import picocli.CommandLine;
import picocli.CommandLine.Model.OptionSpec;

/// What the service runs with, typed or not, as labels of the metric `kv_build_info`: `--wal-interval-ms`
/// becomes `wal_interval_ms`.
final class EffectiveOptions {
    private EffectiveOptions() {}

    /// @param parsed the command line
    /// @param http has the values of those options whose default depends on the machine, but for `cacheBytes`
    static Map<String, String> labels(CommandLine parsed, HttpOptions http, long cacheBytes) {
        Map<String, String> labels = new TreeMap<>();
        for (OptionSpec option : parsed.getCommandSpec().options()) {
            if (!option.usageHelp() && !option.versionHelp()) {
                String name = option.longestName().substring(2).replace('-', '_');
                Object value = option.getValue();
                labels.put(
                        name,
                        value instanceof Enum<?> choice
                                ? choice.name().toLowerCase(Locale.ROOT)
                                : String.valueOf(value));
            }
        }
        labels.put("selectors", Integer.toString(http.selectors()));
        labels.put("workers", Integer.toString(http.workers()));
        labels.put("cache_bytes", Long.toString(cacheBytes));
        BuildInfo build = BuildInfo.read();
        labels.put("version", build.version());
        labels.put("revision", build.revision());
        labels.put("java", Runtime.version().toString());
        return labels;
    }
}
