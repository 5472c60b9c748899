package kv;

import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import kv.cache.CachedStore;
import kv.http.HttpOptions;
import kv.http.Operations;
import kv.lsm.CompactionPolicyKind;
import kv.lsm.Compression;
import kv.lsm.OptionRange;
import kv.lsm.ReadMode;
import kv.lsm.StoreOptions;
import kv.lsm.WalMode;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/// The command line as typed. [#http] and [#store] turn it into what the service runs with; nobody else sees
/// it.
@Command(
        name = "kv-service",
        sortOptions = false,
        versionProvider = BuildInfo.Provider.class,
        usageHelpWidth = 110,
        usageHelpAutoWidth = false,
        customSynopsis = "java -jar kv-service.jar --dir PATH [options]",
        description = {
            "A persistent key-value service: an LSM store behind one-nio.",
            "Prints `ready: http://HOST:PORT` on stdout when it serves; logs go to stderr; SIGTERM and "
                    + "SIGINT stop it in order.",
            "Exit codes: 0 stopped in order, 2 bad arguments, 1 anything else. BYTES may end in k, m or g.%n"
        })
final class Arguments {
    @Option(names = "--help", usageHelp = true, description = "Show this and exit.")
    boolean help;

    @Option(names = "--version", versionHelp = true, description = "Show version, revision and Java, and exit.")
    boolean version;

    @ArgGroup(validate = false, order = 1, heading = "%nBehaviour%n")
    Behaviour behaviour = new Behaviour();

    @ArgGroup(validate = false, order = 2, heading = "%nPerformance%n")
    Performance performance = new Performance();

    @ArgGroup(validate = false, order = 3, heading = "%nShape of the store (may change with every start)%n")
    ShapeArguments shape = new ShapeArguments();

    @ArgGroup(validate = false, order = 4, heading = "%nLimits%n")
    Limits limits = new Limits();

    static final class Behaviour {
        @Option(
                names = "--dir",
                paramLabel = "PATH",
                converter = DirectoryPath.class,
                description = "Directory of the store; made when absent. Required.")
        Path dir;

        @Option(
                names = "--port",
                paramLabel = "N",
                defaultValue = "8080",
                description = "TCP port; 0 picks a free one. Default: ${DEFAULT-VALUE}.")
        int port;

        @Option(
                names = "--host",
                paramLabel = "ADDRESS",
                defaultValue = "127.0.0.1",
                description = "Address to bind to. Default: ${DEFAULT-VALUE}. The service has no access control.")
        String host;

        @Option(
                names = "--wal",
                paramLabel = "MODE",
                defaultValue = "interval",
                description = {
                    "How durable an acknowledged write is. Default: ${DEFAULT-VALUE}.",
                    "none: lost with the process until its memtable is flushed; os: survives the process; "
                            + "interval: that, and at most --wal-interval-ms are lost with the machine; always: "
                            + "survives a power cut, each write waits for a sync that it shares with those that wait "
                            + "at that time."
                })
        WalMode wal;

        @Option(
                names = "--wal-interval-ms",
                paramLabel = "MS",
                defaultValue = "1000",
                description = "--wal interval: milliseconds between two syncs. Default: ${DEFAULT-VALUE}. Longer "
                        + "loses more with the machine, shorter keeps the disk busier.")
        int walIntervalMillis;

        @Option(
                names = "--admin",
                description = {
                    "Answer POST /v0/admin/flush, compact, checkpoint?dir=PATH and idle; without it they get 403.",
                    "The service has no access control: whoever reaches its port can then fill its disk."
                })
        boolean admin;

        @Option(
                names = "--drain-ms",
                paramLabel = "MS",
                defaultValue = "10000",
                description = {
                    "Longest time in milliseconds that a stop waits for requests under way. Default: ${DEFAULT-VALUE}.",
                    "Longer loses fewer answers to slow clients and keeps the next start waiting."
                })
        int drainMillis;

        @Option(
                names = "--slow-request-ms",
                paramLabel = "MS",
                defaultValue = "0",
                description = {
                    "Logs each request that takes this many milliseconds or longer, with what it waited for; 0 "
                            + "for none. Default: ${DEFAULT-VALUE}.",
                    "Costs a request a reading of the clock and two system calls, twice that with another "
                            + "thread. At most 10 lines a second; the next says how many were left out."
                })
        int slowRequestMillis;
    }

    static final class Performance {
        @Option(
                names = "--handler",
                paramLabel = "KIND",
                defaultValue = "selector",
                description = {
                    "Which threads run requests. Default: ${DEFAULT-VALUE}.",
                    "selector: those that hold the connections, shortest way, a slow request holds up its "
                            + "selector; workers: a fixed pool behind a bounded queue, two thread switches a request; "
                            + "virtual: a virtual thread each."
                })
        HttpOptions.HandlerKind handler;

        @Option(
                names = "--selectors",
                paramLabel = "N",
                description = "Threads that hold connections. Default: one less than the processors, at least 1: "
                        + "flush and compaction need one too. More than processors only adds switches.")
        Integer selectors;

        @Option(
                names = "--workers",
                paramLabel = "N",
                description = "Requests run at the same time with --handler workers (threads) or virtual. Default: "
                        + "twice the processors. More hides waiting for the disk, costs memory and switches.")
        Integer workers;

        @Option(
                names = "--queue",
                paramLabel = "N",
                defaultValue = "1024",
                description = "Requests that may wait for a worker; further ones get 503. Default: "
                        + "${DEFAULT-VALUE}. Larger takes bursts and makes the last one wait longer.")
        int queue;

        @Option(
                names = "--memtable-bytes",
                paramLabel = "BYTES",
                converter = ByteCount.class,
                defaultValue = "64m",
                description = "Size of one memtable. Default: ${DEFAULT-VALUE}. Larger makes fewer, larger tables "
                        + "and costs memory (up to three at a time) and recovery time.")
        long memtableBytes;

        @Option(
                names = "--block-bytes",
                paramLabel = "BYTES",
                converter = ByteCount.class,
                defaultValue = "4k",
                description = "Size of a data block. Default: ${DEFAULT-VALUE}. Larger makes the index smaller and "
                        + "compression better, point reads slower.")
        long blockBytes;

        @Option(
                names = "--bloom-bits",
                paramLabel = "N",
                defaultValue = "10",
                description = "Bits of bloom filter per key; 0 for none. Default: ${DEFAULT-VALUE} (1 %% wrong). "
                        + "Each bit costs one bit of memory and disk per key.")
        int bloomBits;

        @Option(
                names = "--compaction",
                paramLabel = "POLICY",
                defaultValue = "leveled",
                description = "leveled: cheap reads, more rewriting; tiered: less rewriting, dearer reads, more "
                        + "space; none: tables pile up. Default: ${DEFAULT-VALUE}.")
        CompactionPolicyKind compaction;

        @Option(
                names = "--read",
                paramLabel = "MODE",
                defaultValue = "mmap",
                description = "How tables are read. mmap: no copy, a cold page stops its thread; pread: one call "
                        + "per block, index and filters off-heap. Default: ${DEFAULT-VALUE}.")
        ReadMode read;

        @Option(
                names = "--table-memory",
                paramLabel = "BYTES",
                converter = ByteCount.class,
                defaultValue = "0",
                description = {
                    "Memory that tables may take in the page cache; 0 asks the system every second. Default: "
                            + "${DEFAULT-VALUE}.",
                    "Tables that are larger together are read page by page, and GETs that wait for the disk "
                            + "leave their selector; that costs a system call for each page of a GET. So does the time "
                            + "after a start until all tables are in memory."
                })
        long tableMemoryBytes;

        @Option(
                names = "--compression",
                paramLabel = "CODEC",
                defaultValue = "none",
                description = "none or lz4 for data blocks. Default: ${DEFAULT-VALUE}. lz4 costs CPU on every read "
                        + "of a block and saves space.")
        Compression compression;

        @Option(
                names = "--cache-entries",
                paramLabel = "N",
                defaultValue = "0",
                description = "Values cached in front of the store; 0 for none. Default: ${DEFAULT-VALUE}. Costs "
                        + "heap: entries x (key + value + about 130 bytes), at most --cache-bytes; values over "
                        + "64 KiB are not cached.")
        long cacheEntries;

        @Option(
                names = "--cache-bytes",
                paramLabel = "BYTES",
                converter = ByteCount.class,
                description = "Most heap that the cached values may take, whatever --cache-entries says. Default: "
                        + "a quarter of the heap. More leaves less to requests and garbage.")
        Long cacheBytes;
    }

    static final class Limits {
        @Option(
                names = "--max-value-bytes",
                paramLabel = "BYTES",
                converter = ByteCount.class,
                defaultValue = "1m",
                description = "Larger values get 413. Default: ${DEFAULT-VALUE}. Unfinished requests together hold "
                        + "at most a quarter of the heap.")
        long maxValueBytes;

        @Option(
                names = "--max-batch-bytes",
                paramLabel = "BYTES",
                converter = ByteCount.class,
                defaultValue = "4m",
                description = {
                    "Longest body of POST /v0/entities/get and batch, and most bytes of values that a get "
                            + "answers. Default: ${DEFAULT-VALUE}.",
                    "Two of each kind run at a time, and each costs up to three times so much heap, of the quarter "
                            + "for requests: one that finds none gets 503."
                })
        long maxBatchBytes;

        @Option(
                names = "--stall-limit-ms",
                paramLabel = "MS",
                defaultValue = "1000",
                description = "Milliseconds a write may wait for flush or compaction before it gets 503; 0 waits "
                        + "for ever. Default: ${DEFAULT-VALUE}. Only its own connection waits.")
        int stallLimitMillis;

        @Option(
                names = "--max-connections",
                paramLabel = "N",
                defaultValue = "10000",
                description = "Further connections are closed at once. Default: ${DEFAULT-VALUE}. Each costs up to "
                        + "1.9 kB of heap and a file descriptor.")
        int maxConnections;

        @Option(
                names = "--idle-timeout-ms",
                paramLabel = "MS",
                defaultValue = "60000",
                description = "A connection on which nothing moves for this many milliseconds is closed. Default: "
                        + "${DEFAULT-VALUE}.")
        int idleTimeoutMillis;

        @Option(
                names = "--request-timeout-ms",
                paramLabel = "MS",
                defaultValue = "30000",
                description = "Milliseconds a client may take to send one request before it gets 408. Default: "
                        + "${DEFAULT-VALUE}.")
        int requestTimeoutMillis;

        @Option(
                names = "--answer-timeout-ms",
                paramLabel = "MS",
                defaultValue = "60000",
                description = "Milliseconds a client may take to receive one answer before it is cut off. Default: "
                        + "${DEFAULT-VALUE}. An answer that is not taken holds memory; a range also holds the "
                        + "tables that it began with. Who needs longer ranges asks for them in parts.")
        int answerTimeoutMillis;
    }

    /// To picocli an option that is given twice begins its group anew, and forgets the others of it.
    ///
    /// @throws IllegalArgumentException with a line for the user when one is
    static void requireEachOnce(String[] typed) {
        Set<String> seen = new HashSet<>();
        for (String word : typed) {
            String name = word.split("=", 2)[0];
            if (name.startsWith("--") && !seen.add(name)) {
                throw new IllegalArgumentException("option given twice: " + name);
            }
        }
    }

    /// @throws IllegalArgumentException with a line for the user when an option is out of its range
    HttpOptions http() {
        int processors = Runtime.getRuntime().availableProcessors();
        if (behaviour.host.isBlank()) {
            throw new IllegalArgumentException("missing address: --host=ADDRESS");
        }
        return new HttpOptions(
                behaviour.host,
                between("--port", behaviour.port, 0, 65_535),
                performance.handler,
                between(
                        "--selectors",
                        performance.selectors == null ? selectors(processors) : performance.selectors,
                        1,
                        256),
                between("--workers", performance.workers == null ? 2 * processors : performance.workers, 1, 100_000),
                between("--queue", performance.queue, 1, 10_000_000),
                (int) between("--max-value-bytes", limits.maxValueBytes, 0, StoreOptions.VALUE_BYTES_MAX),
                between("--max-connections", limits.maxConnections, 1, 1_000_000),
                between("--idle-timeout-ms", limits.idleTimeoutMillis, 1, 86_400_000),
                between("--request-timeout-ms", limits.requestTimeoutMillis, 1, 86_400_000),
                between("--answer-timeout-ms", limits.answerTimeoutMillis, 1, 86_400_000),
                new Operations(
                        behaviour.admin,
                        between("--drain-ms", behaviour.drainMillis, 0, 3_600_000),
                        (int) between("--max-batch-bytes", limits.maxBatchBytes, 1 << 10, 64 << 20),
                        between("--slow-request-ms", behaviour.slowRequestMillis, 0, 3_600_000)));
    }

    /// Leaves a processor to flush and compaction; the README says what that gains.
    private static int selectors(int processors) {
        return Math.clamp(processors - 1L, 1, 256);
    }

    /// As [#http].
    StoreOptions store() {
        if (behaviour.dir == null || behaviour.dir.toString().isEmpty()) {
            throw new IllegalArgumentException("missing option: --dir=PATH, the directory of the store");
        }
        between("--cache-entries", performance.cacheEntries, 0, Integer.MAX_VALUE);
        between("--cache-bytes", cacheBytes(), 1 << 10, Runtime.getRuntime().maxMemory());
        StoreOptions.Builder options = StoreOptions.at(behaviour.dir).toBuilder()
                .wal(behaviour.wal)
                .walInterval(Duration.ofMillis(
                        StoreOptions.WAL_INTERVAL_MILLIS.check("--wal-interval-ms", behaviour.walIntervalMillis)))
                .stallLimit(Duration.ofMillis(
                        StoreOptions.STALL_LIMIT_MILLIS.check("--stall-limit-ms", limits.stallLimitMillis)))
                .memtableBytes(StoreOptions.MEMTABLE_BYTES.check("--memtable-bytes", performance.memtableBytes))
                .blockBytes((int) StoreOptions.BLOCK_BYTES.check("--block-bytes", performance.blockBytes))
                .bloomBitsPerKey(StoreOptions.BLOOM_BITS.check("--bloom-bits", performance.bloomBits))
                .compaction(performance.compaction)
                .read(performance.read)
                .tableMemoryBytes(StoreOptions.TABLE_MEMORY_BYTES.check("--table-memory", performance.tableMemoryBytes))
                .compression(performance.compression);
        return shape.applyTo(options).build();
    }

    /// Most bytes of the cache, where there is one.
    long cacheBytes() {
        return performance.cacheBytes == null ? CachedStore.bytesOfHeap() : performance.cacheBytes;
    }

    long cacheEntries() {
        return performance.cacheEntries;
    }

    static int between(String option, int value, int min, int max) {
        return (int) between(option, (long) value, min, max);
    }

    static long between(String option, long value, long min, long max) {
        return new OptionRange(min, max).check(option, value);
    }
}
