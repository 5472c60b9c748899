package kv.process;

import static java.net.http.HttpRequest.BodyPublishers.ofString;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The real process: its one line on stdout, its exit codes, its one line of complaint, its orderly end.
class CommandLineTest {
    @TempDir
    private Path directory;

    private ServiceProcess start(String... more) throws IOException {
        List<String> arguments =
                new ArrayList<>(List.of("--dir", directory.resolve("store").toString(), "--port", "0"));
        arguments.addAll(List.of(more));
        return ServiceProcess.start(arguments);
    }

    private static String ask(int port, HttpRequest.Builder request, String target)
            throws IOException, InterruptedException {
        try (HttpClient client = HttpClient.newHttpClient()) {
            HttpResponse<String> response = client.send(
                    request.uri(URI.create("http://127.0.0.1:" + port + target)).build(),
                    HttpResponse.BodyHandlers.ofString());
            return response.statusCode() + " " + response.body();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"TERM", "INT"})
    void aSignalStopsTheServiceInOrderAndNothingIsLostEvenWithoutALog(String signal) throws Exception {
        try (ServiceProcess service = start("--wal", "none")) {
            int port = service.awaitReady();
            assertThat(ask(port, HttpRequest.newBuilder().PUT(ofString("one")), "/v0/entity?id=a"))
                    .startsWith("201");
            service.signal(signal);
            assertThat(service.awaitExit()).isZero();
            assertThat(service.outLines()).containsExactly("ready: http://127.0.0.1:" + port);
            assertThat(service.err()).contains("SIG" + signal, "stopped").doesNotContain("Exception");
        }
        try (ServiceProcess again = start()) {
            assertThat(ask(again.awaitReady(), HttpRequest.newBuilder().GET(), "/v0/entity?id=a"))
                    .isEqualTo("200 one");
        }
    }

    @Test
    void theKindOfInputAndOutputIsLoggedAndNoStackTraceFrightensTheUser() throws Exception {
        try (ServiceProcess service = start()) {
            service.awaitReady();
            assertThat(service.err()).contains("I/O: ").doesNotContain("UnsatisfiedLinkError", "WARNING", "\tat ");
            // started from classes, without the jar's manifest: these tests go through one-nio's own calls
            assertThat(service.err()).doesNotContain("called directly");
        }
    }

    /// What each option does: [kv.ArgumentsTest].
    @Test
    void helpListsTheOptionsOfTheReadmeAndExitsWithZero() throws Exception {
        Set<String> ofReadme = found("(?m)^\\| `(--[a-z0-9-]+)` \\|", Files.readString(Path.of("README.md")));
        try (ServiceProcess service = ServiceProcess.start(List.of("--help"))) {
            assertThat(service.awaitExit()).isZero();
            Set<String> ofHelp = found("(?m)^ {2,8}(--[a-z0-9-]+)", String.join("\n", service.outLines()));
            assertThat(ofHelp).contains("--help", "--version").containsAll(ofReadme);
            ofHelp.removeAll(Set.of("--help", "--version"));
            assertThat(ofReadme).containsAll(ofHelp).hasSizeGreaterThan(30);
        }
    }

    private static Set<String> found(String pattern, String text) {
        return Pattern.compile(pattern)
                .matcher(text)
                .results()
                .map(result -> result.group(1))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    /// Ten thousand writes in one request of a JVM that has just begun take more than a millisecond.
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void slowRequestsAreLoggedOnlyWhereThatIsAskedFor(boolean wanted) throws Exception {
        StringBuilder batch = new StringBuilder();
        for (int i = 10_000; i < 20_000; i++) {
            batch.append("put 5 5\n").append(i).append("value\n");
        }
        try (ServiceProcess service = wanted ? start("--slow-request-ms", "1") : start()) {
            int port = service.awaitReady();
            assertThat(ask(port, HttpRequest.newBuilder().POST(ofString(batch.toString())), "/v0/entities/batch"))
                    .startsWith("20");
            service.signal("TERM");
            assertThat(service.awaitExit()).isZero();
            if (wanted) {
                assertThat(service.err())
                        .containsPattern(
                                "slow request: method=POST, target=/v0/entities/batch, status=20\\d, total_ms=");
            } else {
                assertThat(service.err()).doesNotContain("slow request");
            }
        }
    }

    @Test
    void versionIsOneLineWithTheRevisionAndExitsWithZero() throws Exception {
        try (ServiceProcess service = ServiceProcess.start(List.of("--version"))) {
            assertThat(service.awaitExit()).isZero();
            assertThat(service.outLines()).hasSize(1);
            assertThat(service.outLines().getFirst()).matches("kv-service \\d+\\.\\d+\\.\\d+, revision .+, Java 25.*");
        }
    }

    @Test
    void theStoreOpensWithWhatTheCommandLineSays() throws Exception {
        try (ServiceProcess service = start(
                "--table-bytes=32m",
                "--frozen-memtables=3",
                "--level0-compaction=5",
                "--level0-slowdown=17",
                "--level0-stop=33",
                "--slowdown-bytes-per-second=17m",
                "--level1-bytes=128m",
                "--level-multiplier=8",
                "--compaction-bytes-per-second=9m")) {
            int port = service.awaitReady();
            assertThat(ask(port, HttpRequest.newBuilder().GET(), "/metrics?prefix=kv_build"))
                    .contains(
                            "kv_build_info{",
                            "version=",
                            "revision=",
                            "table_bytes=\"" + (32 << 20) + "\"",
                            "wal=\"interval\"")
                    .contains("selectors=")
                    .doesNotContain("selectors=\"null\"", "workers=\"null\"");
            assertThat(service.err())
                    .contains(
                            "tableBytes=" + (32 << 20),
                            "frozenMemtablesMax=3",
                            "level0Compaction=5",
                            "level0Slowdown=17",
                            "level0Stop=33",
                            "slowdownBytesPerSecond=" + (17 << 20),
                            "level1Bytes=" + (128 << 20),
                            "levelMultiplier=8",
                            "compactionBytesPerSecond=" + (9 << 20));
        }
    }

    /// All others: [kv.MainTest].
    @Test
    void aBadArgumentIsOneLineThatNamesItAndExitCode2() throws Exception {
        try (ServiceProcess service = start("--nonsense")) {
            assertThat(service.awaitExit()).isEqualTo(2);
            assertThat(service.outLines()).isEmpty();
            assertThat(service.err().lines()).hasSize(1);
            assertThat(service.err()).startsWith("kv-service: ").contains("--nonsense");
        }
    }

    @Test
    void aMissingDirectoryIsExitCode2() throws Exception {
        try (ServiceProcess service = ServiceProcess.start(List.of("--port", "0"))) {
            assertThat(service.awaitExit()).isEqualTo(2);
            assertThat(service.err()).contains("--dir").hasLineCount(1);
        }
    }

    @Test
    void aPortInUseIsOneLineAndExitCode1() throws Exception {
        try (ServerSocket taken = new ServerSocket(0);
                ServiceProcess service = ServiceProcess.start(
                        List.of("--dir", directory.resolve("store").toString(), "--port", "" + taken.getLocalPort()))) {
            assertThat(service.awaitExit()).isEqualTo(1);
            assertThat(service.err().lines()).hasSize(1);
            assertThat(service.err()).contains("port=" + taken.getLocalPort(), "reason=Address already in use");
            assertThat(service.outLines()).isEmpty();
        }
    }

    /// Of the addresses that are kept for documents. A port below 1024 is refused for another reason again.
    @ParameterizedTest
    @ValueSource(strings = {"0", "8080"})
    void anAddressThatIsNotOursIsOneLineWithTheReasonAndExitCode1(String port) throws Exception {
        try (ServiceProcess service = ServiceProcess.start(
                List.of("--dir", directory.resolve("store").toString(), "--host", "192.0.2.1", "--port", port))) {
            assertThat(service.awaitExit()).isEqualTo(1);
            assertThat(service.err().lines()).hasSize(1);
            assertThat(service.err()).contains("host=192.0.2.1", "reason=Cannot assign requested address");
        }
    }

    @Test
    void aDirectoryThatCannotBeOneSaysWhy() throws Exception {
        Path file = Files.writeString(directory.resolve("file"), "x");
        try (ServiceProcess service = ServiceProcess.start(List.of("--dir", file.toString(), "--port", "0"))) {
            assertThat(service.awaitExit()).isEqualTo(1);
            assertThat(service.err()).contains("not a directory: " + file).doesNotContain("\tat ");
        }
    }

    @Test
    void aDirectoryInUseIsOneLineAndExitCode1() throws Exception {
        try (ServiceProcess first = start()) {
            first.awaitReady();
            try (ServiceProcess second = start()) {
                assertThat(second.awaitExit()).isEqualTo(1);
                assertThat(second.err().lines().filter(line -> line.startsWith("kv-service: ")))
                        .hasSize(1);
                assertThat(second.err())
                        .contains("in use", directory.toString())
                        .doesNotContain("\tat ");
            }
        }
    }

    @Test
    void aDamagedStoreIsOneLineThatNamesTheFileAndExitCode1() throws Exception {
        try (ServiceProcess service = start()) {
            ask(service.awaitReady(), HttpRequest.newBuilder().PUT(ofString("one")), "/v0/entity?id=a");
            service.signal("TERM");
            service.awaitExit();
        }
        Path damaged;
        try (var files = Files.walk(directory.resolve("store"))) {
            damaged = files.filter(file -> Files.isRegularFile(file)
                            && file.toString().toLowerCase().contains("manifest"))
                    .findFirst()
                    .orElseThrow();
        }
        byte[] bytes = Files.readAllBytes(damaged);
        bytes[bytes.length / 2] ^= 0x55;
        Files.write(damaged, bytes);
        try (ServiceProcess service = start()) {
            assertThat(service.awaitExit()).isEqualTo(1);
            assertThat(service.err()).contains(damaged.getFileName().toString()).doesNotContain("\tat ");
        }
    }
}
