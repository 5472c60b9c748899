"""The text that wrk, wrk2 and loadgen print, read into numbers.

    Running 30s test @ URL                           banner (a copied report may lack it)
      1 threads and 16 connections
      Thread calibration: …                          wrk2 and loadgen, once per thread; older versions say
                                                     `9747 usec`
      Thread Stats   Avg  Stdev  Max  +/- Stdev      from here to Transfer/sec nothing else may stand
        Latency …
        Req/Sec …
      Latency Distribution …                         -L; a second one, uncorrected, with -U; each may carry a
                                                     spectrum
      N requests in T, B read
      Socket errors: … / Non-2xx or 3xx responses: … only when there are some
    Requests/sec: …
    Transfer/sec: …                                  after it, anything: what the script's done() prints

A text is whole or it is a FormatError that names file and line: a cut or altered text never reads as zero.
What a script prints before the statistics or after the summary is kept in ``script_output``. Times in
microseconds.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from kvstudy.errors import FormatError
from kvstudy.record import wrk2_units as units
from kvstudy.record.text_lines import TextLines

CORRECTED, UNCORRECTED, CLOSED_LOOP = "corrected", "uncorrected", "closed loop"


@dataclass(frozen=True)
class Spread:
    """One row under `Thread Stats`; ``within_stdev_percent``: share of samples within one stdev of the
    mean."""

    mean: float
    stdev: float
    max: float
    within_stdev_percent: float


@dataclass(frozen=True)
class SpectrumRow:
    value_us: float
    percentile: float  # 0 – 100
    count: int  # samples at or below value_us


@dataclass
class Distribution:
    """``kind``: CORRECTED (from the due time), UNCORRECTED (from the send) or CLOSED_LOOP (wrk, from
    the send)."""

    kind: str
    percentiles_us: dict[float, float] = field(default_factory=dict)
    spectrum: list[SpectrumRow] = field(default_factory=list)
    mean_us: float | None = None
    stdev_us: float | None = None
    max_us: float | None = None
    total_count: int | None = None


@dataclass
class Wrk2Text:
    """One printed result. None: not printed. Counts of errors are 0 when wrk prints no line for them, as it
    does."""

    file: str
    line: int
    url: str | None = None
    planned_duration_s: float | None = None
    threads: int | None = None
    connections: int | None = None
    calibrations_us: list[float] = field(default_factory=list)
    latency_us: Spread | None = None
    thread_rate_rps: Spread | None = None
    distributions: dict[str, Distribution] = field(default_factory=dict)
    requests: int = 0
    duration_s: float = 0.0
    bytes_read: float = 0.0
    socket_errors: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("connect", "read", "write", "timeout"), 0)
    )
    non_2xx_3xx: int = 0
    achieved_rate_rps: float = 0.0
    transfer_bytes_per_s: float = 0.0
    script_output: list[str] = field(default_factory=list)

    @property
    def errors_total(self) -> int:
        return sum(self.socket_errors.values())


def parse(text: str, file: str) -> list[Wrk2Text]:
    """Every result in ``text``, in order; ``file`` names the text in errors. At least one, or FormatError."""
    reader = TextLines(text, file)
    results: list[Wrk2Text] = []
    while (result := _result(reader, results[-1].script_output if results else [])) is not None:
        results.append(result)
    if not results:
        raise reader.error("no wrk2 result here", reader.first_words())
    return results


def parse_one(text: str, file: str) -> Wrk2Text:
    """The only result in ``text``; FormatError where a second one begins."""
    results = parse(text, file)
    if len(results) > 1:
        raise FormatError(file, results[1].line, f"one result expected: found={len(results)}")
    return results[0]


_BANNER = re.compile(r"Running (\S+) test @ (\S+)")
_THREADS = re.compile(r"(\d+) threads and (\d+) connections")
_CALIBRATION = re.compile(
    r"Thread calibration: mean lat\.: (\S+?) ?(us|ms|usec|msec), rate sampling interval: \d+ ?m(?:s|sec)"
)
_STATS = re.compile(r"Thread Stats\s+Avg\s+Stdev\s+Max\s+\+/- Stdev")
_SPREAD = r"\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+%)"
_LATENCY = re.compile("Latency" + _SPREAD)
_RATE = re.compile("Req/Sec" + _SPREAD)
_DISTRIBUTION = re.compile(r"Latency Distribution( \(HdrHistogram - (Recorded|Uncorrected) Latency.*\))?")
_PERCENTILE = re.compile(r"(\d+(?:\.\d+)?)%\s+(\S+)")
_SPECTRUM = re.compile(r"Detailed Percentile spectrum:")
_SPECTRUM_HEAD = re.compile(r"Value\s+Percentile\s+TotalCount\s+1/\(1-Percentile\)")
_SPECTRUM_ROW = re.compile(r"(\d+\.\d+)\s+([01]\.\d+)\s+(\d+)\s+(inf|\d+\.\d+)")
_NUMBER = r"\s*(-?nan|\d+\.\d+)"
_MEAN = re.compile(rf"#\[Mean\s+={_NUMBER}, StdDeviation\s+={_NUMBER}\]")
_MAX = re.compile(rf"#\[Max\s+={_NUMBER}, Total count\s+=\s*(\d+)\]")
_BUCKETS = re.compile(r"#\[Buckets\s+=\s*\d+, SubBuckets\s+=\s*\d+\]")
_RULE = re.compile(r"-{10,}")
_REQUESTS = re.compile(r"(\d+) requests in (\S+), (\S+) read")
_SOCKET = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")
_STATUS = re.compile(r"Non-2xx or 3xx responses: (\d+)")
_ACHIEVED = re.compile(r"Requests/sec:\s*(\S+)")
_TRANSFER = re.compile(r"Transfer/sec:\s*(\S+)")
# Lines that mean nothing outside a result: a script that prints them cannot be told from a text that lost its
# head.
_INSIDE = (
    _THREADS,
    _LATENCY,
    _RATE,
    _DISTRIBUTION,
    _SPECTRUM,
    _SPECTRUM_HEAD,
    _SPECTRUM_ROW,
    _MEAN,
    _MAX,
    _BUCKETS,
    _REQUESTS,
    _SOCKET,
    _STATUS,
    _ACHIEVED,
    _TRANSFER,
)


def _result(lines: TextLines, before: list[str]) -> Wrk2Text | None:
    """The next result, or None at the end of the text; lines in front of it are appended to ``before``."""
    result = None
    while (line := lines.next()) is not None:
        if (banner := _BANNER.fullmatch(line)) is not None:
            if result is not None:
                raise lines.error("a result begins before the last one ended")
            result = Wrk2Text(lines.file, lines.at, url=banner[2])
            result.planned_duration_s = lines.read(units.time_us, banner[1]) / 1e6
            found = lines.match(_THREADS, "`N threads and M connections`")
            result.threads, result.connections = int(found[1]), int(found[2])
        elif _STATS.fullmatch(line):
            result = result or Wrk2Text(lines.file, lines.at)
            _statistics(lines, result)
            return result
        elif result is not None and (found := _CALIBRATION.fullmatch(line)) is not None:
            result.calibrations_us.append(lines.read(units.time_us, found[1] + found[2]))
        elif any(pattern.fullmatch(line) for pattern in _INSIDE):
            raise lines.error(f"part of a result without its beginning: found={line!r}")
        elif line:
            (before if result is None else result.script_output).append(line)
    if result is not None:
        raise lines.error(
            "text ends before `Thread Stats`",
            "the generator was stopped or its output was cut: measure again",
        )
    return None


def _statistics(lines: TextLines, result: Wrk2Text) -> None:
    result.latency_us = _spread(lines, lines.match(_LATENCY, "`Latency` row"), units.time_us)
    result.thread_rate_rps = _spread(lines, lines.match(_RATE, "`Req/Sec` row"), units.count)
    while (head := lines.take(_DISTRIBUTION)) is not None:
        kind = CLOSED_LOOP if head[1] is None else CORRECTED if head[2] == "Recorded" else UNCORRECTED
        if kind in result.distributions:
            raise lines.error(f"a second distribution of the same kind: kind={kind}")
        result.distributions[kind] = _distribution(lines, kind)
    found = lines.match(_REQUESTS, "`N requests in T, B read`")
    result.requests = int(found[1])
    result.duration_s = lines.read(units.time_us, found[2]) / 1e6
    result.bytes_read = lines.read(units.size_bytes, found[3])
    if (found := lines.take(_SOCKET)) is not None:
        result.socket_errors = dict(
            zip(("connect", "read", "write", "timeout"), map(int, found.groups()), strict=True)
        )
    if (found := lines.take(_STATUS)) is not None:
        result.non_2xx_3xx = int(found[1])
    result.achieved_rate_rps = lines.read(units.count, lines.match(_ACHIEVED, "`Requests/sec:`")[1])
    result.transfer_bytes_per_s = lines.read(units.size_bytes, lines.match(_TRANSFER, "`Transfer/sec:`")[1])


def _spread(lines: TextLines, row: re.Match, convert: Callable[[str], float]) -> Spread:
    mean, stdev, most = (lines.read(convert, text) for text in row.groups()[:3])
    return Spread(mean, stdev, most, lines.read(units.share_percent, row[4]))


def _distribution(lines: TextLines, kind: str) -> Distribution:
    result = Distribution(kind)
    while (row := lines.take(_PERCENTILE)) is not None:
        percentile, value_us = float(row[1]), lines.read(units.time_us, row[2])
        if any(percentile <= p or value_us < v for p, v in result.percentiles_us.items()):
            raise lines.error(f"percentiles must rise: percentile={row[1]}%, value={row[2]}")
        result.percentiles_us[percentile] = value_us
    if not result.percentiles_us:
        lines.match(_PERCENTILE, "percentile row")
    if lines.take(_SPECTRUM) is not None:
        _spectrum(lines, result)
    return result


def _spectrum(lines: TextLines, result: Distribution) -> None:
    """Printed in milliseconds; ends with the row of percentile 1."""
    lines.match(_SPECTRUM_HEAD, "head of the spectrum")
    last, inverse = SpectrumRow(0.0, -1.0, 0), ""
    while inverse != "inf":
        found = lines.match(_SPECTRUM_ROW, "row of the spectrum")
        inverse = found[4]
        row = SpectrumRow(round(float(found[1]) * 1e3, 3), round(float(found[2]) * 100, 6), int(found[3]))
        if row.value_us < last.value_us or row.percentile < last.percentile or row.count < last.count:
            raise lines.error("rows of the spectrum must rise")
        result.spectrum.append(row)
        last = row
    found = lines.match(_MEAN, "`#[Mean`")
    result.mean_us, result.stdev_us = float(found[1]) * 1e3, float(found[2]) * 1e3
    found = lines.match(_MAX, "`#[Max`")
    result.max_us, result.total_count = float(found[1]) * 1e3, int(found[2])
    if result.total_count != last.count:
        raise lines.error(f"spectrum and total disagree: last row={last.count}, total={result.total_count}")
    lines.match(_BUCKETS, "`#[Buckets`")
    lines.match(_RULE, "line of dashes")
