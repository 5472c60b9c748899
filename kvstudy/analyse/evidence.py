"""From the files of a run to the evidence that the validity checks judge."""

import math
import re

import numpy as np

from kvstudy.analyse.validity import Evidence
from kvstudy.errors import KvstudyError
from kvstudy.record import hdr
from kvstudy.record.generator_result import GeneratorResult, Latency
from kvstudy.record.run_folder import PACKED_SUFFIX, SealedRun
from kvstudy.record.verification import verify

LATENESS_PERCENTILES = (50.0, 99.0)
_WHY_LENGTH_MAX = 300  # a line for people
# What the service, the JVM and one-nio write when something is wrong; warnings of the JVM about itself are
# not among it.
_LOG_ERROR = re.compile(
    r"\b(ERROR|SEVERE|FATAL)\b|Exception\b|\bOutOfMemoryError\b|\bStackOverflowError\b|^error\b|# A "
    r"fatal error"
)


def generator_evidence(
    result: GeneratorResult,
    *,
    generator: str,
    closed_loop: bool,
    connections: int | None,
    threads: int | None,
    offered_rate_rps: float | None,
    method: str,
) -> dict:
    """Evidence that any generator's result gives, also a published text alone; keyword arguments of
    Evidence."""
    main = main_latency(result)
    return {
        "generator": generator,
        "closed_loop": closed_loop,
        "connections": connections,
        "threads": threads,
        "method": method,
        "offered_rate_rps": offered_rate_rps,
        "achieved_rate_rps": result.achieved_rate_rps,
        "unexpected_answers": result.unexpected_answers,
        "answers": result.answers,
        "errors": result.errors,
        "requests_due": _due(result),
        "unsent": result.unsent,
        "samples": None if main is None else main.total,
        "saturated": result.saturated,
        "saturated_reason": result.saturated_reason,
        "distorted_percentiles": result.distorted_percentiles,
        "unanswered": result.unanswered,
        "lower_bounds": result.lower_bounds,
        "percentile_pairs": _pairs(result),
        "lateness_is_own": result.own_lateness is not None,
    }


def why_unreadable(run: SealedRun, error: Exception) -> str:
    """One line, the same wherever the run lies. What others wrote into a file may be of any type, and so may
    be the error of who reads it. Where memory ran out nothing is wrong with the file: that error goes on."""
    if isinstance(error, MemoryError):
        raise error
    if isinstance(error, KvstudyError):
        told = error.message
    elif isinstance(error, OSError | ValueError):
        told = str(error)
    else:
        told = f"{type(error).__name__}: {error}"
    return " ".join(told.replace(f"{run.path}/", "").split())[:_WHY_LENGTH_MAX]


def unlike_sealed(run: SealedRun, told: list[str]) -> list[str]:
    """What is no longer as it was sealed, a line for each file that no line of ``told`` is about."""
    return [
        f"{problem.file}: {problem.what}"
        for problem in verify(run.path)
        if not any(problem.file.removesuffix(PACKED_SUFFIX) in line for line in told)
    ]


def text_evidence(result: GeneratorResult, **facts) -> Evidence:
    """Evidence of a text of which nothing else is known; ``facts`` as for ``generator_evidence``."""
    return Evidence(**generator_evidence(result, **facts))


def main_latency(result: GeneratorResult) -> Latency | None:
    """Response time; in a closed loop, where nothing is due, service time."""
    return result.latencies.get("response") or result.latencies.get("service")


def log_errors(log: str) -> tuple[str, ...]:
    """The lines of a service's log that tell of an error."""
    return tuple(line.strip() for line in log.splitlines() if _LOG_ERROR.search(line))


def thirds(
    seconds: list[tuple[int, hdr.Histogram]], process: dict[str, np.ndarray] | None, measured_s: float
) -> dict:
    """Of the first and the last third of the window: keyword arguments of Evidence; none for a window under
    three seconds or without answers in a third."""
    last = math.floor(measured_s + 1e-6)
    length = last // 3
    spans = [range(length), range(last - length, last)]
    parts = [[histogram for second, histogram in seconds if second in span] for span in spans]
    if length < 1 or not all(parts):
        return {}
    merged = [hdr.merge(part) for part in parts]
    medians, p99s = (tuple(part.percentile_us(percentile) for part in merged) for percentile in (50, 99))
    found = {"third_medians_us": medians, "third_answers": min(part.total for part in merged)}
    if all(part.total >= 1000 for part in merged):  # ten samples beyond
        found["third_p99s_us"] = p99s
    if process is not None and {"service_cpu_s", "service_jit_cpu_s"} <= process.keys():
        found["third_cpus_us"] = tuple(
            _cpu_us(process, span, part.total) for span, part in zip(spans, merged, strict=True)
        )
    return found


def _cpu_us(process: dict[str, np.ndarray], span: range, answers: int) -> float:
    rows = np.isin(process["second"], span)
    return (
        float(
            (process["service_cpu_s"][rows].sum() - process["service_jit_cpu_s"][rows].sum()) / answers * 1e6
        )
        if rows.sum() == len(span) and answers
        else math.nan
    )


def ends_s(process: dict[str, np.ndarray]) -> np.ndarray:
    """When each row ended, since the window began: with its second, where that was not noted. One that was
    read late began seconds before."""
    return process["ended_s"] if "ended_s" in process else process["second"] + 1.0


def shares(process: dict[str, np.ndarray], measured_s: float) -> dict[str, float]:
    """Means over the measured window, weighted by the rows' length: of the machine's CPU time (steal,
    foreign) or of the time (throttled); service and generator in cores. ``sampled_share``: of the window's
    seconds, that rows are of. Columns that were not recorded are left out."""
    window_s = max(1.0, math.floor(measured_s + 1e-6))
    length_s = process["interval_s"] if "interval_s" in process else np.ones(len(process["second"]))
    end_s = ends_s(process)
    within_s = np.maximum(0.0, np.minimum(end_s, window_s) - np.maximum(end_s - length_s, 0.0))
    rows = within_s > 0
    if not rows.any():
        return {}
    within_s, length_s = within_s[rows], length_s[rows]
    weighted = {"steal_share": "steal_share", "foreign_share": "foreign_cpu_share"}
    summed = {
        "throttled_share": "throttled_s",
        "service_cpu_share": "service_cpu_s",
        "generator_cpu_share": "generator_cpu_s",
    }
    found = {"sampled_share": min(1.0, float(within_s.sum() / window_s))}
    found |= {
        name: min(1.0, float(np.nansum(process[column][rows] * within_s) / within_s.sum()))
        for name, column in weighted.items()  # who is read late was counted for longer than the row lasts
        if column in process
    }
    found |= {
        name: float(np.nansum(process[column][rows] * within_s / length_s) / within_s.sum())
        for name, column in summed.items()
        if column in process
    }
    if "service_rss_bytes" in process:
        found["service_rss_max_bytes"] = float(np.nanmax(process["service_rss_bytes"][rows]))
    return found


def cpu_us_per_answer(
    process: dict[str, np.ndarray], seconds: list[tuple[int, hdr.Histogram]], measured_s: float
) -> float:
    """CPU microseconds of the service for each answer, garbage collection, flush and compaction included, the
    JVM's compilers not: they are at work while code is new, and an option that brings more code would look
    dear for it. Where they were not counted apart (series without ``service_jit_cpu_s``) only the second half
    of the window counts, when they have mostly done. NaN when a window is under two seconds or nothing was
    counted by second.
    """
    if "service_cpu_s" not in process:
        return math.nan
    last = math.floor(measured_s + 1e-6)
    apart = "service_jit_cpu_s" in process
    counted = range(0 if apart else last // 2, last)
    rows = np.isin(process["second"], counted)
    answers = sum(histogram.total for second, histogram in seconds if second in counted)
    if last < 2 or rows.sum() != len(counted) or not answers:
        return math.nan
    used_s = process["service_cpu_s"][rows].sum() - (
        process["service_jit_cpu_s"][rows].sum() if apart else 0.0
    )
    return float(used_s / answers * 1e6)


def _due(result: GeneratorResult) -> int | None:
    return None if result.unsent is None else result.requests_sent + result.unsent


def _pairs(result: GeneratorResult) -> tuple[tuple[float, float, float], ...]:
    late, response = result.own_lateness or result.latencies.get("lateness"), result.latencies.get("response")
    if late is None or response is None or late.histogram is None or response.histogram is None:
        return ()
    return tuple(
        (percentile, late.histogram.percentile_us(percentile), response.histogram.percentile_us(percentile))
        for percentile in LATENESS_PERCENTILES
    )
