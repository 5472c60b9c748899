package kv;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.reflect.RecordComponent;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import kv.http.HttpOptions;
import kv.lsm.StoreOptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;
import picocli.CommandLine.Model.OptionSpec;

/// Every option of the command line, as picocli knows them: a new one is asked of here without being named.
class ArgumentsTest {
    /// For an option whose default depends on the machine: a number that no machine's is.
    private static final int OF_NO_MACHINE = 199;

    private static final int BYTES_OF_NO_MACHINE = 65_537;

    /// What the service runs with.
    private record Run(HttpOptions http, StoreOptions store, long cacheEntries, long cacheBytes) {}

    private static CommandLine parsed(List<String> more) {
        List<String> typed = new ArrayList<>(List.of("--dir=store"));
        typed.addAll(more);
        CommandLine line = new CommandLine(new Arguments())
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setOverwrittenOptionsAllowed(true);
        line.parseArgs(typed.toArray(String[]::new));
        return line;
    }

    private static Run run(String... typed) {
        Arguments arguments = parsed(List.of(typed)).getCommand();
        return new Run(arguments.http(), arguments.store(), arguments.cacheEntries(), arguments.cacheBytes());
    }

    private static Stream<OptionSpec> options() {
        return parsed(List.of()).getCommandSpec().options().stream()
                .filter(option -> !option.usageHelp() && !option.versionHelp());
    }

    /// Each typed with a value that is not its default.
    static Stream<String> changes() {
        return options().map(option -> {
            Object value = option.getValue();
            return option.longestName()
                    + switch (value) {
                        case Boolean flag -> "";
                        case Enum<?> choice -> "=" + other(choice);
                        case Integer number -> "=" + (number + 1);
                        case Long number -> "=" + (number + 1);
                        case String host -> "=::1";
                        case Path path -> "=another";
                        case null -> "=" + (option.type() == Long.class ? BYTES_OF_NO_MACHINE : OF_NO_MACHINE);
                        default -> throw new AssertionError("an option of another type: " + option);
                    };
        });
    }

    private static String other(Enum<?> choice) {
        Object[] all = choice.getDeclaringClass().getEnumConstants();
        return ((Enum<?>) all[(choice.ordinal() + 1) % all.length]).name().toLowerCase(Locale.ROOT);
    }

    @ParameterizedTest
    @MethodSource("changes")
    void anOptionThatIsTypedChangesWhatTheServiceRunsWith(String typed) {
        assertThat(run(typed)).isNotEqualTo(run());
    }

    @Test
    void whatStoreAndServerCanBeToldCanBeTyped() throws ReflectiveOperationException {
        Run changed = run(changes().toArray(String[]::new));
        assertEachDiffers(changed.store, run().store);
        assertEachDiffers(changed.http, run().http);
        assertEachDiffers(changed.http.operations(), run().http.operations());
    }

    private static void assertEachDiffers(Record changed, Record defaults) throws ReflectiveOperationException {
        for (RecordComponent component : changed.getClass().getRecordComponents()) {
            assertThat(component.getAccessor().invoke(changed))
                    .as(changed.getClass().getSimpleName() + "." + component.getName())
                    .isNotEqualTo(component.getAccessor().invoke(defaults));
        }
    }

    @Test
    void theReadmeSaysTheDefaultOfEveryOption() throws IOException {
        String readme = Files.readString(Path.of("README.md"));
        options().forEach(option -> {
            Matcher row = Pattern.compile("(?m)^\\| `" + option.longestName() + "` \\|([^|]*)\\|")
                    .matcher(readme);
            assertThat(row.find()).as(option.longestName()).isTrue();
            if (option.defaultValue() != null) {
                assertThat(row.group(1).replace("`", "") + ",")
                        .as(option.longestName())
                        .containsPattern("(^|\\s)" + Pattern.quote(option.defaultValue()) + "\\s*,");
            }
        });
    }
}
