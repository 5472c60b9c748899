package kv;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

/// What `kv_build_info` says of the options.
class EffectiveOptionsTest {
    private static Map<String, String> labels(String... typed) {
        Arguments arguments = new Arguments();
        CommandLine commandLine = new CommandLine(arguments).setCaseInsensitiveEnumValuesAllowed(true);
        commandLine.parseArgs(typed);
        return EffectiveOptions.labels(commandLine, arguments.http(), arguments.cacheBytes());
    }

    @Test
    void anOptionThatWasNotTypedHasTheValueThatItRunsWith() {
        Map<String, String> labels = labels("--dir", "store");
        assertThat(labels).containsEntry("dir", "store").containsEntry("wal", "interval");
        for (String ofMachine : new String[] {"selectors", "workers", "cache_bytes"}) {
            assertThat(labels.get(ofMachine)).as(ofMachine).matches("[1-9][0-9]*");
        }
        assertThat(labels).doesNotContainValue("null");
    }

    @Test
    void anOptionThatWasTypedHasThatValue() {
        assertThat(labels("--dir", "store", "--cache-bytes", "64k", "--workers", "3"))
                .containsEntry("cache_bytes", "65536")
                .containsEntry("workers", "3");
    }
}
