package kv;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.net.URI;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Command lines that are refused before anything is opened, without a process for each.
class MainTest {
    @TempDir
    private Path directory;

    /// One that is not refused would run until a signal comes.
    @Timeout(300)
    @ParameterizedTest
    @ValueSource(
            strings = {
                "--nonsense",
                "--host=",
                "--port=x",
                "--port=70000",
                "--wal=sometimes",
                "--handler=none",
                "--memtable-bytes=12q",
                "--memtable-bytes=1",
                "--selectors=0",
                "--queue=0",
                "--bloom-bits=99",
                "--cache-entries=-1",
                "--table-bytes=1",
                "--frozen-memtables=0",
                "--level0-compaction=1",
                "--level0-compaction=17",
                "--level0-stop=15",
                "--level-multiplier=1",
                "--compaction-bytes-per-second=-1",
                "stray",
                "@options.txt"
            })
    void aBadArgumentIsOneLineThatNamesItAndNothingIsOpened(String argument) {
        Path store = directory.resolve("store");
        // an option that is given twice would be refused for that alone
        String port = argument.startsWith("--port") ? "--host=127.0.0.1" : "--port=0";
        isRefused(argument, "--dir", store.toString(), port, argument);
        assertThat(store).doesNotExist();
    }

    /// As every name beyond ASCII is where the locale is POSIX. What no locale can hold can be tried in all of them.
    @Test
    void aDirectoryThatTheLocaleCannotNameIsRefusedWithWhatHelps() {
        isRefused("'--dir': no path: Nul character not allowed", "--port=0", "--dir=a\0b");
        isRefused("LC_ALL=C.UTF-8", "--port=0", "--dir=a\0b");
    }

    /// As `--dir "$STORE"` of a script is, where nothing was set: the store would be in the working directory.
    @Test
    void anEmptyDirectoryIsNone() {
        isRefused("--dir", "--port=0", "--dir=");
        isRefused("--dir", "--port=0");
        assertThat(Path.of("MANIFEST")).doesNotExist();
    }

    /// Nobody can tell which one was meant. To picocli the second one begins its group of options anew: all others
    /// that were typed before it would be forgotten.
    @ParameterizedTest
    @ValueSource(strings = {"--port=0", "--dir=elsewhere", "--wal=os", "--memtable-bytes=1m", "--max-connections=9"})
    void anOptionThatIsGivenTwiceIsRefused(String argument) {
        String[] nameAndValue = argument.split("=");
        Path store = directory.resolve("store");
        isRefused(
                argument,
                nameAndValue[0],
                nameAndValue[1],
                argument.startsWith("--dir") ? "--admin" : "--dir=" + store,
                argument);
        assertThat(store).doesNotExist();
    }

    @Test
    void theAddressOfTheServiceIsOneThatAClientCanBeGiven() {
        assertThat(Main.url("127.0.0.1", 8080)).isEqualTo("http://127.0.0.1:8080");
        assertThat(Main.url("localhost", 8080)).isEqualTo("http://localhost:8080");
        assertThat(URI.create(Main.url("::1", 8080)).getPort()).isEqualTo(8080);
        assertThat(Main.url("[::1]", 8080)).isEqualTo("http://[::1]:8080");
    }

    private static void isRefused(String named, String... arguments) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        assertThat(Main.run(arguments, new PrintStream(out, true), new PrintStream(err, true)))
                .isEqualTo(2);
        assertThat(out.toString()).isEmpty();
        assertThat(err.toString().lines()).hasSize(1);
        assertThat(err.toString()).startsWith("kv-service: ").contains(named.replaceAll("=.*", ""));
    }
}
