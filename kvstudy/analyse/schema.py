"""The tidy tables: what one row of each is, its columns, their types, units and meaning.

    runs          one row per sealed run
    percentiles   one row per run, latency kind and percentile
    intervals     one row per run, interval of the measured window and latency kind
    slowest       one row per run and each of its slowest answers
    stacks        one row per profiled run, profiler event and distinct stack
    events        one row per run and GC pause, safepoint or store event
    validity      one row per run and check

and, of launches of duets (record/duet.py), which have no row in any of these,

    duets          one row per sealed launch
    slices         one row per launch and slice, with why it does not count
    ratios         one row per launch, workload, loop and measure
    duet_stacks    one row per profiled launch, side, profiler event and distinct stack
    duet_validity  one row per launch and check

Every frame that kvstudy.analyse hands out has exactly these columns in this order with these types
(``conform``), also when it has no rows, so that figures need no special case. Missing numbers are NaN
(float64) or NA (Int64).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from kvstudy import errors
from kvstudy.record import duet

# Raised whenever a column is added, removed or changes meaning: tables of another version are rebuilt, never
# mixed.
SCHEMA_VERSION = 16

LATENCY_KINDS = ("response", "service", "lateness", "own_lateness")
VERDICTS = ("PASS", "WARN", "FAIL")
PROFILE_EVENTS = (
    "cpu",
    "alloc",
    "lock",
    "wall",
    "cpu_slow",
)  # cpu_slow: of the slow seconds of the run alone
EVENT_KINDS = (
    "gc_pause",
    "safepoint",
    "flush",
    "compaction",
    "write_stall",
    "wal_sync",
    "cpu_steal",
    "cpu_foreign",
    "cpu_throttled",
    "service_stopped",
)
# What a column may say whether any run says so or not; of all others the runs alone know what there is.
POSSIBLE: dict[str, tuple] = {
    "label": ("",),
    "method": ("PUT", "GET", "MIXED", "DELETE"),
    "server": ("kv-service", "empty"),
    "generator": ("loadgen", "wrk2", "wrk"),
    "arrivals": ("uniform", "poisson"),
    "verdict": VERDICTS,
    "excluded": ("", "outside", "service"),
    "answer": ("", "held", "missed", "unknown"),
    "latency_kind": LATENCY_KINDS,
    "event": PROFILE_EVENTS,
    "kind": EVENT_KINDS,
}

# Of these columns nothing else can be said.
ENUMERATED = POSSIBLE.keys() - {"label", "server"}

# Texts as Python's own strings: page 00, which groups few rows often, takes 1.2 times the CPU with Arrow's.
pd.set_option("mode.string_storage", "python")

TEXT, FLAG, COUNT, WHOLE, REAL = "str", "bool", "Int64", "int64", "float64"
# Large strings: a column of histograms passes the 2 GiB that the offsets of plain ones can reach.
_ARROW = {TEXT: pa.large_string(), FLAG: pa.bool_(), COUNT: pa.int64(), WHOLE: pa.int64(), REAL: pa.float64()}


@dataclass(frozen=True)
class Column:
    """``dtype``: TEXT, FLAG, WHOLE (never missing), COUNT (whole number or NA) or REAL (NaN when missing)."""

    name: str
    dtype: str
    meaning: str


def _columns(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


RUNS = _columns(
    ("run_id", TEXT, "name of the run folder: sortable time and a hint for people"),
    ("experiment", TEXT, "name of the experiment file"),
    ("label", TEXT, "what the user called this series of runs (before, after, …)"),
    (
        "variant",
        TEXT,
        'factors varied in service and JVM, "handler=workers wal=os" in key order; "" when none',
    ),
    ("workload", TEXT, "Lua script under experiments/workloads, without .lua"),
    ("method", TEXT, "PUT, GET, MIXED or DELETE"),
    (
        "server",
        TEXT,
        "kv-service, empty (one-nio with a handler that does nothing) or the name of another subject",
    ),
    ("generator", TEXT, "loadgen, wrk2 or wrk"),
    ("closed_loop", FLAG, "true: each connection sends as soon as it was answered; there is no offered rate"),
    ("connections", WHOLE, ""),
    ("threads", WHOLE, ""),
    ("offered_rate_rps", REAL, "requests per second asked for; NaN in a closed loop"),
    ("achieved_rate_rps", REAL, "answers per second over the measured window"),
    ("duration_s", REAL, "planned length, warm-up included"),
    ("warm_up_s", REAL, "first part of it, kept out of every latency"),
    ("measured_s", REAL, "length of the window that the latencies are from"),
    ("repeat", WHOLE, "1 … repeats"),
    ("plan_index", WHOLE, "position in the order the plan ran in, from 0"),
    ("seed", WHOLE, ""),
    ("profiled", FLAG, "a profiler was attached: never used for a latency claim"),
    (
        "processors_awake",
        FLAG,
        "no processor slept while it was measured; false also for runs of before this was noted",
    ),
    ("outcome", TEXT, '"completed" or "failed: why"'),
    ("verdict", TEXT, "worst verdict of the run's checks: PASS, WARN or FAIL"),
    (
        "excluded",
        TEXT,
        "why it is in no median: outside, service (an outcome), or empty (analyse/validity.py)",
    ),
    ("same_within", REAL, "two sides that differ by less are the same to whoever asked: 0.05 is 5 %"),
    ("start_utc", TEXT, "start of the measured window, ISO-8601"),
    ("revision", TEXT, "git revision measured"),
    ("dirty", FLAG, "the tree had uncommitted changes"),
    ("requests_sent", COUNT, "over the whole run, warm-up included"),
    ("requests_measured", COUNT, "answers in the measured window"),
    ("unexpected_answers", COUNT, "answers with a status the workload does not expect"),
    ("errors_total", COUNT, "connect, read and write errors and timeouts"),
    ("unsent", COUNT, "requests that were due and never sent"),
    ("response_mean_us", REAL, ""),
    ("response_stdev_us", REAL, ""),
    ("response_max_us", REAL, ""),
    ("service_mean_us", REAL, ""),
    ("lateness_p99_us", REAL, "send lateness, the wait for a busy connection included, percentile 99"),
    (
        "service_cpu_share",
        REAL,
        "CPU seconds per second of the service in the measured window; 1.0 = one core",
    ),
    ("generator_cpu_share", REAL, "the same of the generator"),
    (
        "service_cpu_us_per_answer",
        REAL,
        (
            "CPU microseconds of the service for each answer, its compilers left out "
            "(evidence.cpu_us_per_answer); NaN without figures by second"
        ),
    ),
    ("service_rss_max_bytes", REAL, ""),
    ("service_options", TEXT, "JSON object"),
    ("workload_args", TEXT, "JSON object"),
    (
        "arrivals",
        TEXT,
        (
            'uniform or poisson; of this and the following columns "not recorded" where the run did not '
            "note it (analyse/conditions.py)"
        ),
    ),
    ("spin", TEXT, "how the generator waits: auto, off or a time"),
    ("timeout_s", TEXT, ""),
    ("jvm", TEXT, "JSON list of JVM options"),
    ("pause", TEXT, "JSON object: when and how long the service was stopped; null"),
    ("fill", TEXT, "JSON object: the records in the store before the run; null"),
    ("awake", TEXT, "whether processors were asked to stay awake: auto, true or false"),
    ("cores", TEXT, "whether service and generator were to have cores of their own: apart, shared or null"),
    (
        "head_start_bytes",
        TEXT,
        (
            "of how many bytes of records a random part was written before the warm-up, another in each "
            "repeat; null"
        ),
    ),
    ("statuses", TEXT, "JSON list of the answers that the workload itself expects; null: the subject's"),
    (
        "subject",
        TEXT,
        "JSON object of a service that is not ours: its url or command, paths, statuses, …; null of ours",
    ),
    ("profiler", TEXT, "JSON object: the events of the profiler, and by what it sampled the CPU; null"),
    ("pinning", TEXT, "on which cores service and generator ran"),
    ("service_program", TEXT, "JSON object: digest of the jar, version of the JDK"),
    ("generator_program", TEXT, "digest of the generator"),
    (
        "script_digest",
        TEXT,
        "digest of the Lua script and of all that it requires, as they were when it was measured",
    ),
    ("machine", TEXT, "JSON object: what makes it this machine and no other; over a network the service's"),
    (
        "hosts",
        TEXT,
        "one machine; over a network JSON object: hosts of service and generators, and their machines",
    ),
    (
        "search",
        TEXT,
        (
            "JSON object of the search that this run is a trial of: method, objective, precision, purpose "
            '(search, sweep or confirm), …; "" when it is none'
        ),
    ),
    (
        "answer",
        TEXT,
        (
            'what a trial says of its rate by the objective of its search: held, missed or unknown; "" '
            "when it is none"
        ),
    ),
)
PERCENTILES = _columns(
    ("run_id", TEXT, ""),
    (
        "latency_kind",
        TEXT,
        (
            "response (from the due time), service (from the send), lateness (of the send), or "
            "own_lateness: the generator's own part of the lateness, where it tells that apart"
        ),
    ),
    ("percentile", REAL, "0 – 100"),
    (
        "latency_us",
        REAL,
        "NaN where fewer than 10 samples lie beyond (not to be printed); the maximum, 100, is always given",
    ),
    ("sample_count", WHOLE, "samples of the whole distribution"),
    ("samples_beyond", WHOLE, "of them above this percentile; under 100: mark the number as uncertain"),
)
INTERVALS = _columns(
    ("run_id", TEXT, ""),
    ("start_s", REAL, "begin of the interval, from the start of the measured window"),
    (
        "length_s",
        REAL,
        "of each interval of the run: 1, or shorter; the last has what came until the last answer",
    ),
    ("second", WHOLE, "the second that it is a part of, from 0"),
    ("latency_kind", TEXT, "response, service or lateness, as in percentiles"),
    ("count", WHOLE, "answers recorded in this interval"),
    ("p50_us", REAL, ""),
    ("p99_us", REAL, "NaN with fewer than 10 samples beyond"),
    ("max_us", REAL, ""),
    (
        "histogram",
        TEXT,
        "HdrHistogram V2, compressed, base64, microseconds; kvstudy.record.hdr.decode reads it",
    ),
)
SLOWEST = _columns(
    ("run_id", TEXT, ""),
    ("due_s", REAL, "when the request was due, from the start of the measured window; negative before it"),
    ("response_us", WHOLE, "from then to its answer"),
    ("service_us", WHOLE, "from the send to its answer"),
    ("connection", WHOLE, "number of its connection, of all of the run"),
)
STACKS = _columns(
    ("run_id", TEXT, ""),
    ("event", TEXT, "cpu, alloc, lock or wall; cpu_slow: cpu in the slow seconds of the run alone"),
    ("stack", TEXT, "frames joined by ';', root first"),
    (
        "samples",
        WHOLE,
        "samples (cpu, wall), bytes (alloc) or nanoseconds (lock), as the profiler's converter totals them",
    ),
)
EVENTS = _columns(
    ("run_id", TEXT, ""),
    ("kind", TEXT, ", ".join(EVENT_KINDS)),
    ("start_s", REAL, "from the start of the measured window; negative before it"),
    ("duration_ms", REAL, ""),
    ("attributes", TEXT, "JSON object"),
)
VALIDITY = _columns(
    ("run_id", TEXT, ""),
    ("check", TEXT, "name of a check of kvstudy.analyse.validity"),
    ("verdict", TEXT, "PASS, WARN or FAIL"),
    ("observed", TEXT, "what was seen, with unit"),
    ("required", TEXT, "what the check asks for, with unit"),
)
DUETS = _columns(
    ("run_id", TEXT, "name of the launch's folder"),
    ("experiment", TEXT, "name of the experiment file, or of the comparison of two builds"),
    ("label", TEXT, ""),
    ("comparison", TEXT, "digest of all that must be equal for two launches to be pooled"),
    ("asked", TEXT, "digest of what was asked for; equal for comparisons that asked for the same"),
    ("launch", WHOLE, "1 … of this comparison, in the order in which they were begun, failed ones included"),
    ("a", TEXT, "name of side a, against which b is compared"),
    ("b", TEXT, "name of side b"),
    ("sides", TEXT, "JSON object: what is known of each side"),
    ("parts", TEXT, "JSON list: workload, loop, offered rate, connections and threads of each part"),
    ("primary", TEXT, "JSON object: workload, loop and measure named before the first launch"),
    ("same_within", REAL, "two sides that differ by less are the same to whoever asked: 0.05 is 5 %"),
    ("profiled", FLAG, "a profiler was attached: never used for a ratio"),
    ("outcome", TEXT, '"completed" or "failed: why"'),
    ("verdict", TEXT, "worst verdict of the launch's checks"),
    (
        "excluded",
        TEXT,
        (
            "why it is in no ratio: outside, or whose doing it was: a, b or ab (analyse/duet_validity.py); "
            "empty where it counts"
        ),
    ),
    ("hosts", TEXT, "where it ran, as in runs"),
    ("pinning", TEXT, "on which cores services and generator ran"),
    ("start_utc", TEXT, "of the first phase, ISO-8601"),
    ("revision", TEXT, "git revision of kvstudy"),
    ("dirty", FLAG, ""),
    ("seed", WHOLE, ""),
)
SLICES = _columns(
    ("run_id", TEXT, ""),
    *(
        (name, {"text": TEXT, "whole": WHOLE, "real": REAL}[kind], "record.duet.SLICES")
        for name, kind in duet.SLICES.items()
    ),
    ("left_out", TEXT, "why its round does not count, or empty (analyse/comparison/launches.py)"),
    ("lost_by", TEXT, "whose doing that was: a, b, ab or empty"),
)
RATIOS = _columns(
    ("run_id", TEXT, ""),
    ("workload", TEXT, ""),
    ("loop", TEXT, "rate or closed"),
    ("measure", TEXT, "analyse.comparison.launches.MEASURES"),
    ("a", REAL, "of side a: nanoseconds, requests per second, or nanoseconds or bytes per request"),
    ("b", REAL, "of side b"),
    (
        "log_ratio",
        REAL,
        "natural logarithm of b to a in this launch; of medians the median of the rounds' own",
    ),
    ("rounds", WHOLE, "that it rests on"),
    (
        "log_least",
        REAL,
        "log_ratio if a had been as bad as can be in each round that it lost; of a rate b",
    ),
    (
        "log_most",
        REAL,
        "if the other side had been; infinite where it lost too many, of a tail any; not known of costs",
    ),
)
DUET_STACKS = _columns(
    ("run_id", TEXT, ""),
    ("side", TEXT, "a or b"),
    *((one.name, one.dtype, one.meaning) for one in STACKS[1:]),
)
TABLES: dict[str, tuple[Column, ...]] = {
    "runs": RUNS,
    "percentiles": PERCENTILES,
    "intervals": INTERVALS,
    "slowest": SLOWEST,
    "stacks": STACKS,
    "events": EVENTS,
    "validity": VALIDITY,
}
DUET_TABLES: dict[str, tuple[Column, ...]] = {
    "duets": DUETS,
    "slices": SLICES,
    "ratios": RATIOS,
    "duet_stacks": DUET_STACKS,
    "duet_validity": VALIDITY,
}
ALL_TABLES = TABLES | DUET_TABLES


def names(table: str) -> list[str]:
    """Column names of ``table`` in order."""
    return [column.name for column in ALL_TABLES[table]]


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint: the known name that was meant, or which there are."""
    known = list(dict.fromkeys(known))
    return errors.meant(name, known, f"known: {', '.join(known[:12])}{', …' if len(known) > 12 else ''}")


def arrow_schema(table: str) -> pa.Schema:
    """The parquet schema of ``table``; carries SCHEMA_VERSION in its metadata."""
    fields = [pa.field(column.name, _ARROW[column.dtype]) for column in ALL_TABLES[table]]
    return pa.schema(fields, metadata={"kvstudy_schema_version": str(SCHEMA_VERSION)})


def conform(table: str, frame: pd.DataFrame, columns: list[str] | None = None) -> pd.DataFrame:
    """``frame`` with exactly the columns (None: all) and types of ``table``; columns that are not the table's
    are dropped.

    Raises FormatError when a column is missing: a table is never completed with silent blanks.
    """
    columns = names(table) if columns is None else columns
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise errors.FormatError(
            f"table {table}", None, f"columns are missing: {', '.join(missing)}", "run: kvstudy tables"
        )
    types = {column.name: column.dtype for column in ALL_TABLES[table]}
    found = frame[columns]
    # Of all columns at once astype takes several times as long, and most have their type already.
    other = {name: found[name].astype(types[name]) for name in columns if found[name].dtype != types[name]}
    return (found.assign(**other) if other else found).reset_index(drop=True)


def empty(table: str) -> pd.DataFrame:
    """``table`` without rows."""
    return conform(table, pd.DataFrame({name: [] for name in names(table)}))
