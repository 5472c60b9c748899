package kv.process;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/// The real service in a process of its own, started from the classes under test. Killed with the tests' JVM at
/// the latest.
final class ServiceProcess implements AutoCloseable {
    private static final String READY = "ready: http://127.0.0.1:";
    private static final int WAIT_SECONDS = 60;
    /// A shell that starts the tests in the background leaves SIGINT ignored, and what is ignored stays so in
    /// every child: the service would never see it. `env` of GNU gives it back, and then becomes the service.
    private static final List<String> SIGINT_HEARD = sigintHeard();

    private final Process process;
    private final Path log;
    private final BufferedReader out;
    private final Thread killer;
    private final List<String> outLines = new ArrayList<>();

    private ServiceProcess(Process process, Path log) {
        this.process = process;
        this.log = log;
        this.out = process.inputReader(StandardCharsets.UTF_8);
        this.killer = new Thread(process::destroyForcibly);
        Runtime.getRuntime().addShutdownHook(killer);
    }

    /// Starts `kv.Main` and does not wait.
    static ServiceProcess start(List<String> arguments) throws IOException {
        return start(List.of("-Xmx256m"), "kv.Main", arguments);
    }

    static ServiceProcess start(List<String> jvmOptions, String mainClass, List<String> arguments) throws IOException {
        List<String> command = new ArrayList<>(SIGINT_HEARD);
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of(
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "-XX:+PerfDisableSharedMem",
                "-XX:TieredStopAtLevel=1"));
        command.addAll(jvmOptions);
        command.addAll(List.of("-cp", classPath(), mainClass));
        command.addAll(arguments);
        Path log = Files.createTempFile("kv-service", ".log");
        return new ServiceProcess(
                new ProcessBuilder(command).redirectError(log.toFile()).start(), log);
    }

    private static List<String> sigintHeard() {
        List<String> env = List.of("env", "--default-signal=INT");
        List<String> trial = new ArrayList<>(env);
        trial.add("true");
        try {
            boolean known = new ProcessBuilder(trial)
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .start()
                            .onExit()
                            .join()
                            .exitValue()
                    == 0;
            return known ? env : List.of();
        } catch (IOException e) { // no env at all
            return List.of();
        }
    }

    /// That of the tests without the tests: the service runs with its own resources.
    private static String classPath() {
        return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(entry -> !entry.endsWith("test-classes") && !entry.endsWith("test-classes/"))
                .collect(Collectors.joining(File.pathSeparator));
    }

    /// The port, once the service says that it is ready.
    int awaitReady() throws IOException {
        String line = out.readLine();
        if (line == null || !line.startsWith(READY)) {
            throw new IOException("not ready but: " + line + "\n" + err());
        }
        outLines.add(line);
        return Integer.parseInt(line.substring(READY.length()));
    }

    /// Returns as soon as the log holds `text`.
    void awaitLogged(String text) throws InterruptedException {
        long deadline = System.nanoTime() + WAIT_SECONDS * 1_000_000_000L;
        while (!hasLogged(text)) {
            if (!isAlive() && !hasLogged(text) || System.nanoTime() > deadline) {
                throw new AssertionError("not logged: " + text + "\n" + err());
            }
            Thread.sleep(0, 300_000);
        }
    }

    boolean hasLogged(String text) {
        return err().contains(text);
    }

    /// SIGKILL, and waits for the end.
    void kill() {
        process.destroyForcibly().onExit().join();
    }

    /// Sends `signal` (a name such as TERM) through the shell's kill.
    void signal(String signal) throws IOException {
        new ProcessBuilder("kill", "-" + signal, Long.toString(process.pid()))
                .inheritIO()
                .start()
                .onExit()
                .join();
    }

    int awaitExit() {
        try {
            if (!process.waitFor(WAIT_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw new AssertionError("the service did not end within " + WAIT_SECONDS + " s\n" + err());
            }
            out.lines().forEach(outLines::add);
            return process.exitValue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    boolean isAlive() {
        return process.isAlive();
    }

    long pid() {
        return process.pid();
    }

    /// All lines of stdout; after [#awaitExit].
    List<String> outLines() {
        return outLines;
    }

    String err() {
        try {
            return Files.readString(log);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void close() throws IOException {
        process.destroyForcibly();
        Runtime.getRuntime().removeShutdownHook(killer);
        Files.deleteIfExists(log);
    }
}
