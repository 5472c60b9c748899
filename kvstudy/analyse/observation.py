"""One sealed run, read once: its rows of the seven tables.

A run is never dropped: what cannot be read is said in its check ``readable``, and the rest of its rows are
there. A failed run has the rows that its files allow.
"""

import json
import math
from dataclasses import dataclass, field

import numpy as np

from kvstudy.analyse import (
    by_second,
    conditions,
    evidence,
    machine_events,
    percentile_grid,
    schema,
    validity,
)
from kvstudy.analyse.comparison.words import SAME_WITHIN
from kvstudy.errors import FormatError
from kvstudy.plan.objective import Objective
from kvstudy.record import generator_result, hdr, interval_log, jfr, process_series, slowest, stacks
from kvstudy.record.generator_result import GeneratorResult
from kvstudy.record.run_folder import SealedRun

_NO_ANSWERS = dict.fromkeys(
    slowest.COLUMNS, np.empty(0, dtype=np.int64)
)  # wrk and wrk2 tell of no single answer


@dataclass
class _Interval:
    start_s: float
    length_s: float
    kind: str
    text: str
    histogram: hdr.Histogram

    @property
    def second(self) -> int:
        return math.floor(self.start_s)


@dataclass
class _Read:
    """What could be read of a run; ``problems``: why the rest could not."""

    run: SealedRun
    problems: list[str] = field(default_factory=list)

    def attempt(self, name: str, reader, default):
        """``reader(text, name)`` when the file is there; ``default`` when it is not or cannot be read."""
        if not self.run.has(name):
            return default
        try:
            return reader(self.run.text(name), name)
        except Exception as error:  # whatever somebody else wrote into it
            why = evidence.why_unreadable(self.run, error)
            self.problems.append(why if name in why else f"{name}: {why}")
            return default


def observe(run: SealedRun) -> dict[str, list[dict] | dict]:
    """Table name → rows, each with the keys of kvstudy.analyse.schema; of ``slowest``, which has thousands a
    run, column name → values."""
    facts, read = run.facts, _Read(run)
    result: GeneratorResult | None = read.attempt("generator.json", generator_result.read_json, None)
    told_all = result is not None
    if result is None:
        result = read.attempt("generator.txt", generator_result.read_text, None)
    if facts["outcome"] == "completed" and not (run.has("generator.json") or run.has("generator.txt")):
        read.problems.append("generator.json: missing: a completed run has its generator's result")
    window = _window(facts)
    start_epoch_s = window[0] if result is None or result.start_epoch_s is None else result.start_epoch_s
    intervals = read.attempt("latency.hlog", lambda text, name: _intervals(text, start_epoch_s, name), [])
    measured_s = window[1] if result is None or result.measured_s is None else result.measured_s
    process = read.attempt("process.csv", process_series.read, None)
    shares = {} if process is None else evidence.shares(process, measured_s)
    # What is shorter than the clocks of two hosts are known to agree may lie beside any answer.
    shortest_ms = conditions.clock_bound_s(run) * 1e3
    events = [
        event
        for event in read.attempt("events.json", jfr.read, [])
        if shortest_ms == 0 or event.duration_ms > shortest_ms
    ]
    events += [] if process is None else machine_events.process_events(process, start_epoch_s)
    # Who waited is seen by whole seconds: in a shorter interval there may be no other answers than theirs.
    served = _by_second(intervals, "service")
    slow = read.attempt("slowest.csv", slowest.read, _NO_ANSWERS)
    events += machine_events.stops(served, facts["connections"], events, start_epoch_s, slow)
    events.sort(key=lambda event: (event.start_epoch_s, event.kind))
    rows = {
        "percentiles": _percentiles(run.run_id, result),
        "intervals": [_interval_row(run.run_id, interval) for interval in intervals],
        "slowest": {
            "run_id": [run.run_id] * len(slow["due_us"]),
            "due_s": slow["due_us"] / 1e6,
            **{name: slow[name] for name in ("response_us", "service_us", "connection")},
        },
        "stacks": _stack_rows(read),
        "events": [_event_row(run.run_id, event, start_epoch_s) for event in events],
    }
    answered = _answered(intervals)
    shares["service_cpu_us_per_answer"] = (
        math.nan if process is None else evidence.cpu_us_per_answer(process, answered, measured_s)
    )
    read.problems += evidence.unlike_sealed(run, read.problems)
    checks = validity.check(
        _evidence(read, result, answered, evidence.thirds(answered, process, measured_s), shares)
    )
    rows["validity"] = [{"run_id": run.run_id, **vars(check)} for check in checks]
    rows["runs"] = [_run_row(run, result, measured_s, shares, checks) | _trial(run, told_all)]
    return rows


def _window(facts: dict) -> tuple[float, float]:
    """Start (epoch seconds) and length of the measured window as planned and noted by whoever measured; NaN
    start when it never began."""
    phase = (facts.get("phases") or {}).get("measure") or {}
    start = phase.get("start_utc")
    return (jfr.epoch_s(start) if start else math.nan), max(0.0, facts["duration_s"] - facts["warm_up_s"])


def _intervals(log: str, start_epoch_s: float, file: str) -> list[_Interval]:
    read = interval_log.read(log, file)
    step_s, found = interval_log.step_s(read, file), []
    layouts: dict[str, hdr.Layout] = {}  # of each kind; of several nothing could be added up
    for interval in read:
        if interval.tag.startswith(interval_log.WARM_UP_TAG):
            continue
        try:
            histogram = hdr.decode(interval.histogram)
        except ValueError as reason:
            raise FormatError(file, interval.line, str(reason)) from None
        if histogram.layout != layouts.setdefault(interval.tag, histogram.layout):
            raise FormatError(file, interval.line, "a histogram of another layout than those before")
        # The log's clock is in milliseconds; an interval begins a whole number of steps after the window.
        steps = round((interval.start_epoch_s - start_epoch_s) / step_s)
        start_s = round(steps * step_s, 3)
        found.append(_Interval(start_s, step_s, interval.tag or "response", interval.histogram, histogram))
    return found


def _percentiles(run_id: str, result: GeneratorResult | None) -> list[dict]:
    names = schema.names("percentiles")
    latencies = {} if result is None else dict(result.latencies)
    if (
        result is not None and result.own_lateness is not None and result.own_lateness.total
    ):  # a closed loop has none
        latencies["own_lateness"] = result.own_lateness
    return [
        dict(zip(names, (run_id, kind, *row), strict=True))
        for kind in schema.LATENCY_KINDS
        if kind in latencies
        for row in percentile_grid.rows(latencies[kind])
    ]


def _interval_row(run_id: str, interval: _Interval) -> dict:
    return {
        "run_id": run_id,
        "start_s": interval.start_s,
        "length_s": interval.length_s,
        "second": interval.second,
        "latency_kind": interval.kind,
        **by_second.figures(interval.histogram),
        "histogram": interval.text,
    }


def _stack_rows(read: _Read) -> list[dict]:
    rows = []
    for event in schema.PROFILE_EVENTS:
        for stack, samples in sorted(read.attempt(f"{event}.collapsed", stacks.read, {}).items()):
            rows.append({"run_id": read.run.run_id, "event": event, "stack": stack, "samples": samples})
    return rows


def _event_row(run_id: str, event: jfr.Event, start_epoch_s: float) -> dict:
    return {
        "run_id": run_id,
        "kind": event.kind,
        "start_s": round(event.start_epoch_s - start_epoch_s, 6),
        "duration_ms": event.duration_ms,
        "attributes": json.dumps(event.attributes, sort_keys=True),
    }


def _answered(intervals: list[_Interval]) -> list[tuple[int, hdr.Histogram]]:
    """Second and latencies of what was answered in it: response times, or service times where those are all
    there is."""
    kind = "response" if any(interval.kind == "response" for interval in intervals) else "service"
    return _by_second(intervals, kind)


def _by_second(intervals: list[_Interval], kind: str) -> list[tuple[int, hdr.Histogram]]:
    parts: dict[int, list[hdr.Histogram]] = {}
    for interval in intervals:
        if interval.kind == kind:
            parts.setdefault(interval.second, []).append(interval.histogram)
    return [(second, own[0] if len(own) == 1 else hdr.merge(own)) for second, own in parts.items()]


def _evidence(
    read: _Read,
    result: GeneratorResult | None,
    answered: list[tuple[int, hdr.Histogram]],
    thirds: dict,
    shares: dict,
) -> validity.Evidence:
    run, facts = read.run, read.run.facts
    common = {
        name: facts[name]
        for name in ("generator", "closed_loop", "connections", "threads", "offered_rate_rps", "method")
    }
    known = evidence.generator_evidence(result, **common) if result is not None else common
    known |= {
        name: shares[name]
        for name in ("steal_share", "throttled_share", "foreign_share", "sampled_share")
        if name in shares
    }
    if facts.get("hosts"):  # process.csv is of the service's host alone
        worst = run.machine.get("load_during") or {}
        known |= {
            name: max(known.get(name, 0.0), worst[of_all])
            for name, of_all in (
                ("steal_share", "steal_share_mean"),
                ("foreign_share", "foreign_cpu_share_mean"),
            )
            if of_all in worst
        }
    return validity.Evidence(
        **known,
        outcome=facts["outcome"],
        **thirds,
        logged_samples=sum(histogram.total for _, histogram in answered) if answered else None,
        log_errors=evidence.log_errors(run.text("service.log")) if run.has("service.log") else None,
        data_check=facts["data_check"],
        records_events=_records_events(facts),
        events_recorded=run.has("events.json"),
        profiled=bool(facts["profile"]),
        profiled_share=_profiled_share(facts),
        unreadable=tuple(read.problems),
    )


def _records_events(facts: dict) -> bool:
    """A command or an address with `jvm: true`; our own service, too, but there a failure fails the run."""
    noted = facts.get("subject") or {}
    return bool(noted.get("jvm"))


def _profiled_share(facts: dict) -> float | None:
    """Of the measured time; None: not noted."""
    noted = facts.get("profiler") or {}
    begin_s, measured_s = _window(facts)
    if "start_utc" not in noted or "stop_utc" not in noted or not measured_s > 0 or math.isnan(begin_s):
        return None
    start_s, stop_s = (jfr.epoch_s(noted[name]) for name in ("start_utc", "stop_utc"))
    return max(0.0, min(stop_s, begin_s + measured_s) - max(start_s, begin_s)) / measured_s


def _run_row(
    run: SealedRun,
    result: GeneratorResult | None,
    measured_s: float,
    shares: dict,
    checks: list[validity.Check],
) -> dict:
    facts = run.facts
    same = {
        name: facts[name]
        for name in (
            "experiment",
            "label",
            "workload",
            "method",
            "generator",
            "closed_loop",
            "connections",
            "threads",
            "duration_s",
            "warm_up_s",
            "repeat",
            "plan_index",
            "seed",
            "outcome",
            "revision",
            "dirty",
        )
    }
    phase = (facts.get("phases") or {}).get("measure") or {}
    offered = facts["offered_rate_rps"]
    return {
        "run_id": run.run_id,
        **same,
        "server": facts.get("server") or "kv-service",
        "variant": variant(facts["variant"]),
        "offered_rate_rps": math.nan if offered is None else offered,
        "measured_s": measured_s,
        "profiled": bool(facts["profile"]),
        "processors_awake": bool(run.machine.get("processors_awake")),
        "verdict": validity.worst(checks),
        "excluded": validity.excluded(checks, facts["closed_loop"]),
        "same_within": facts.get("same_within_percent", 100 * SAME_WITHIN) / 100,
        "start_utc": phase.get("start_utc") or "",
        **_counts(result),
        **_latencies(result),
        **{
            name: shares.get(name, math.nan)
            for name in (
                "service_cpu_share",
                "generator_cpu_share",
                "service_cpu_us_per_answer",
                "service_rss_max_bytes",
            )
        },
        "service_options": json.dumps(facts["service"], sort_keys=True),
        "workload_args": json.dumps(facts["workload_args"], sort_keys=True),
        **conditions.conditions_of_run(run),
    }


def _trial(run: SealedRun, told_all: bool) -> dict:
    """Of a trial, the search and what it answered that search: the pages tell what the search itself was
    told. ``told_all``: generator.json is as loadgen writes it; else the answer is unknown, and the check
    ``readable`` says why."""
    search = run.facts.get("search")
    if not search:
        return {"search": "", "answer": ""}
    result = json.loads(run.text("generator.json")) if told_all else None
    answer, _ = Objective.recorded(search["objective"]).answer(
        run.facts["outcome"], result, run.machine.get("load_during"), run.facts.get("data_check")
    )
    return {"search": json.dumps(search, sort_keys=True), "answer": answer.value}


def _counts(result: GeneratorResult | None) -> dict:
    names = ("requests_sent", "requests_measured", "unexpected_answers", "errors_total", "unsent")
    if result is None:
        return {"achieved_rate_rps": math.nan, **dict.fromkeys(names)}
    return {"achieved_rate_rps": result.achieved_rate_rps, **{name: getattr(result, name) for name in names}}


def _latencies(result: GeneratorResult | None) -> dict:
    found = {} if result is None else result.latencies
    response, service, lateness = (found.get(kind) for kind in ("response", "service", "lateness"))
    histogram = None if lateness is None else lateness.histogram
    return {
        "response_mean_us": math.nan if response is None else response.mean_us,
        "response_stdev_us": math.nan if response is None else response.stdev_us,
        "response_max_us": math.nan if response is None else response.max_us,
        "service_mean_us": math.nan if service is None else service.mean_us,
        "lateness_p99_us": math.nan if histogram is None else histogram.percentile_us(99),
    }


def variant(factors: dict) -> str:
    """``{"wal": "os", "handler": "workers"}`` → ``handler=workers wal=os``."""
    return " ".join(f"{name}={factors[name]}" for name in sorted(factors))
