package kv;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.regex.Pattern;
import kv.lsm.ClosedStore;
import kv.lsm.CorruptionException;
import kv.lsm.Escaped;
import kv.lsm.StoreDump;
import kv.lsm.StoreException;
import kv.lsm.StoreRepair;
import kv.lsm.StoreVerifier;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/// Looks at a store that no process has open: `java -cp kv-service.jar kv.Tool verify|dump|repair DIR`.
@Command(
        name = "kv.Tool",
        usageHelpWidth = 110,
        synopsisSubcommandLabel = "verify|dump|repair",
        description = "Verifies, shows or repairs a store that no process has open.",
        versionProvider = BuildInfo.Provider.class,
        mixinStandardHelpOptions = true,
        subcommands = {Tool.Verify.class, Tool.Dump.class, Tool.Repair.class})
public final class Tool implements Callable<Integer> {
    private static final int EXIT_WELL = 0;
    private static final int EXIT_PROBLEMS = 1;
    private static final int EXIT_FAILED = 2;

    @Spec
    private CommandSpec spec;

    public static void main(String[] args) {
        System.exit(run(args, new PrintWriter(System.out, true), new PrintWriter(System.err, true)));
    }

    static int run(String[] args, PrintWriter out, PrintWriter err) {
        CommandLine commandLine =
                new CommandLine(new Tool()).setOut(out).setErr(err).setCaseInsensitiveEnumValuesAllowed(true);
        commandLine.setExecutionExceptionHandler((e, failed, parsed) -> {
            if (!(e instanceof StoreException) && !(e instanceof IOException)) {
                throw e;
            }
            err.println(
                    "kv.Tool: " + StoreException.reasonOf(e).lines().findFirst().orElse(""));
            return e instanceof CorruptionException ? EXIT_PROBLEMS : EXIT_FAILED;
        });
        commandLine.setExitCodeExceptionMapper(e -> EXIT_FAILED); // an error of ours says nothing of the store
        commandLine.setParameterExceptionHandler((e, arguments) -> {
            err.println("kv.Tool: " + e.getMessage().lines().findFirst().orElse("") + " (--help lists all options)");
            return EXIT_FAILED;
        });
        int exit = commandLine.execute(args);
        out.flush();
        return exit;
    }

    @Override
    public Integer call() {
        throw new ParameterException(spec.commandLine(), "missing command: verify, dump or repair");
    }

    private record Key(byte[] bytes) {}

    /// A key as [Escaped] shows it.
    static final class KeyText implements ITypeConverter<Key> {
        private static final Pattern HALF_ESCAPE = Pattern.compile("\\\\x(?![0-9a-fA-F]{2})");

        @Override
        public Key convert(String text) {
            if (HALF_ESCAPE.matcher(text).find()) {
                throw new TypeConversionException(
                        "'" + text + "' is not a key: two hexadecimal digits must follow each \\x");
            }
            return new Key(Escaped.parse(text));
        }
    }

    /// What every command takes.
    private abstract static class OnStore implements Callable<Integer> {
        @Parameters(paramLabel = "DIR", converter = DirectoryPath.class, description = "Directory of the store.")
        Path directory;

        @Spec
        CommandSpec spec;

        PrintWriter out() {
            return spec.commandLine().getOut();
        }

        @Override
        public Integer call() throws IOException {
            try (ClosedStore store = ClosedStore.open(directory)) {
                return with(store);
            }
        }

        abstract int with(ClosedStore store) throws IOException;
    }

    @Command(
            name = "verify",
            mixinStandardHelpOptions = true,
            description = {
                "Reads every edit of the manifest, every block of every table and every record of every log, "
                        + "and checks checksums, " + "order, bounds and references. Changes nothing.",
                "One line for each problem. Exit codes: 0 none, 1 problems, 2 not a store, in use, or not readable."
            })
    static final class Verify extends OnStore {
        @Override
        int with(ClosedStore store) throws IOException {
            StoreVerifier verifier = new StoreVerifier(store, finding -> out().println(finding));
            long problems = verifier.run();
            out().println((problems == 0 ? "ok: " : "damaged: ") + verifier.summary());
            return problems == 0 ? EXIT_WELL : EXIT_PROBLEMS;
        }
    }

    @Command(
            name = "repair",
            mixinStandardHelpOptions = true,
            description = {
                "Makes a damaged store one that opens, with everything that can still be read. Damaged files "
                        + "are moved to DIR/lost.",
                "A store without a problem is not touched. Make a copy first if there is room for one.",
                "Exit codes: 0 nothing was lost, 1 something was, and each loss has its line, 2 it could not "
                        + "be repaired."
            })
    static final class Repair extends OnStore {
        private boolean repaired;

        @Override
        int with(ClosedStore store) throws IOException {
            if (new StoreVerifier(store, finding -> out().println(finding)).run() == 0) {
                out().println("nothing to repair");
                return EXIT_WELL;
            }
            repaired = true;
            try {
                return new StoreRepair(store, out()::println).run() ? EXIT_WELL : EXIT_PROBLEMS;
            } catch (IOException | StoreException e) {
                throw new StoreException(
                        "the repair was cut off; nothing is lost by that, run it again when the reason is gone: "
                                + "directory=" + directory + ", reason=" + StoreException.reasonOf(e),
                        e);
            }
        }

        /// A repaired store is verified, too.
        @Override
        public Integer call() throws IOException {
            int exit = super.call();
            if (repaired) {
                try (ClosedStore again = ClosedStore.open(directory)) {
                    return new StoreVerifier(again, finding -> out().println(finding)).run() == 0 ? exit : EXIT_FAILED;
                }
            }
            return exit;
        }
    }

    @Command(
            name = "dump",
            mixinStandardHelpOptions = true,
            description = {
                "Shows what the store holds, one line each. Bytes that are not printable ASCII are written "
                        + "\\xNN. Changes nothing.",
                "Exit codes: 0 shown, 1 damaged (tables, logs and the manifest are shown as far as they can be read), "
                        + "2 bad arguments, not a store or in use."
            })
    static final class Dump extends OnStore {
        private enum What {
            ENTRIES,
            TABLES,
            LOGS,
            MANIFEST
        }

        @Option(
                names = "--what",
                paramLabel = "WHAT",
                defaultValue = "entries",
                description = {
                    "entries: each key's newest value; tables: each table's entries; logs: each log's "
                            + "records; manifest: its edits. " + "Default: ${DEFAULT-VALUE}."
                })
        private What what;

        @Option(
                names = "--start",
                paramLabel = "KEY",
                converter = KeyText.class,
                description = "First key, with \\xNN for any byte. Default: the first one.")
        private Key startOrNull;

        @Option(
                names = "--end",
                paramLabel = "KEY",
                converter = KeyText.class,
                description = "The first key not shown. Default: none.")
        private Key endOrNull;

        @Option(
                names = "--limit",
                paramLabel = "N",
                defaultValue = "1000",
                description = "Most lines; a last one on stderr says when there are more. Default: ${DEFAULT-VALUE}.")
        private long limit;

        @Option(
                names = "--value-bytes",
                paramLabel = "N",
                defaultValue = "64",
                description = "Bytes of each value that are shown. Default: ${DEFAULT-VALUE}.")
        private int valueBytes;

        @Option(names = "--file", paramLabel = "NAME", description = "With tables and logs: this file only.")
        private String file;

        @Override
        public Integer call() throws IOException {
            try {
                Arguments.between("--limit", limit, 0, Long.MAX_VALUE);
                Arguments.between("--value-bytes", valueBytes, 0, Integer.MAX_VALUE);
                if (file != null && what != What.TABLES && what != What.LOGS) {
                    throw new IllegalArgumentException("--file needs --what tables or logs: --file=" + file);
                }
            } catch (IllegalArgumentException e) {
                throw new ParameterException(spec.commandLine(), e.getMessage(), e);
            }
            return super.call();
        }

        @Override
        int with(ClosedStore store) throws IOException {
            StoreDump.Selection selection = new StoreDump.Selection(
                    startOrNull == null ? null : startOrNull.bytes(),
                    endOrNull == null ? null : endOrNull.bytes(),
                    limit,
                    valueBytes,
                    file);
            StoreDump dump = new StoreDump(store, selection, out()::println);
            switch (what) {
                case ENTRIES -> dump.entries();
                case TABLES -> dump.tables();
                case LOGS -> dump.logs();
                case MANIFEST -> dump.manifest();
            }
            if (dump.isCut()) {
                spec.commandLine()
                        .getErr()
                        .println("kv.Tool: there is more, only the first lines were shown: --limit=" + limit);
            }
            return dump.foundProblems() ? EXIT_PROBLEMS : EXIT_WELL;
        }
    }
}
