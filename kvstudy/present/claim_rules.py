"""How each published claim is measured: one rule per claim of data/published/claims.csv, from the runs of the
experiment that asks it.

A rule gives a number of ours in the claim's unit with its interval over runs (Measured), and the kind of rule
by which ``claims`` judges it. Latencies rest on believed runs, rates on those that speak about their rate,
shares on profiled runs.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from kvstudy.analyse import frames, published, rates
from kvstudy.analyse.answers.service import stable_rate
from kvstudy.analyse.comparison import families
from kvstudy.analyse.comparison.intervals import median_interval
from kvstudy.analyse.comparison.words import CANNOT_TELL, MIN_RUNS
from kvstudy.analyse.configuration import RATE, comparisons, not_repeats
from kvstudy.analyse.tables import Tables
from kvstudy.present import telling, words

HELD_SHARE = 0.99
PROFILED_BY = {
    1: "report-2"
}  # report 1's search is not profiled: report 2 asks the same of the same service, at two rates
SHARE_LEAST_PERCENT = 0.1  # what a profile without a sample of a subsystem may have missed


@dataclass(frozen=True)
class Measured:
    """Our number for a claim, in the claim's unit, with its interval over ``runs`` runs; ``word``: of ratios
    that of the comparison, of numbers *cannot tell* where they are not of what was asked; ``told``: in words
    where its unit is not the claim's, or the number alone is not enough; ``fewest``: the runs of the side
    that has fewer, where there are two; ``trials``: of a search, whose interval knows how few they are;
    ``mixed``: why its runs share no median."""

    value: float
    low: float
    high: float
    runs: int
    word: str | None = None
    told: str = ""
    fewest: int | None = None
    trials: bool = False
    mixed: str = ""

    @property
    def unsure(self) -> str:
        """Why these runs decide nothing: they share no median, or are too few; "" where they may."""
        if self.mixed:
            return self.mixed
        runs = self.runs if self.fewest is None else self.fewest
        side = "" if self.fewest is None else " a side"
        return (
            f"{words.counted(runs, 'run')}{side}: not enough to be sure, {MIN_RUNS} are needed"
            if runs < MIN_RUNS and not self.trials
            else ""
        )


@dataclass(frozen=True)
class Rule:
    """How a claim is measured, and the kind of rule that judges it: see claims."""

    measure: Callable[[Tables], Measured | None]
    kind: str = "number"
    note: str = ""


def _over(values: pd.Series) -> Measured | None:
    known = values.dropna()
    if known.empty:
        return None
    interval = median_interval(known)
    return Measured(interval.estimate, interval.low, interval.high, interval.runs)


def _of(values: pd.Series, runs: pd.DataFrame, along: tuple[str, ...] = ()) -> Measured | None:
    """``_over`` values of ``runs``, which decide nothing where they are not repeats of one another, but for
    ``along``."""
    found = _over(values)
    return replace(found, mixed=not_repeats(runs, along)) if found is not None else None


def _compared(rows: pd.DataFrame, measure: str) -> Measured | None:
    """Of one comparison; several, as of two builds, decide nothing."""
    rows = rows[rows["measure"] == measure]
    if rows.empty:
        return None
    row, fewest = rows.iloc[-1], int(rows[["runs_before", "runs_after"]].min(axis=None))
    mixed = (
        (
            f"{len(rows)} comparisons, of runs that share no median "
            f"({'; '.join(filter(None, rows['differs'])) or 'at several places'})"
        )
        if len(rows) > 1
        else ""
    )
    return Measured(
        row["ratio"],
        row["low"],
        row["high"],
        int(row["runs_before"] + row["runs_after"]),
        row["word"],
        fewest=fewest,
        mixed=mixed,
    )


def _runs(tables: Tables, experiment: str, workload: str, variant: str | None = None, **equal) -> Tables:
    chosen = tables.select(experiment=experiment, workload=workload, **equal)
    return (
        chosen
        if variant is None
        else chosen.only(chosen.runs.loc[chosen.runs["variant"].str.contains(variant, regex=False), "run_id"])
    )


def _percentile(percentile: float, *where, **equal) -> Callable[[Tables], Measured | None]:
    def measure(tables: Tables) -> Measured | None:
        chosen = _runs(tables, *where, **equal).believed()
        points = chosen.percentiles
        points = points[
            (points["latency_kind"] == "response")
            & np.isclose(points["percentile"], percentile)
            & points["latency_us"].notna()
        ]
        return _of(points["latency_us"], chosen.runs[chosen.runs["run_id"].isin(points["run_id"])])

    return measure


def _column(column: str, *where, scale: float = 1.0, **equal) -> Callable[[Tables], Measured | None]:
    """The rate over the runs that speak about it: what one that did not hold it achieved is still what it
    achieved. All else over believed runs: the latency of an overload grows with the length of the run."""

    def measure(tables: Tables) -> Measured | None:
        chosen = _runs(tables, *where, **equal)
        runs = (rates.about_rate(chosen) if column == "achieved_rate_rps" else chosen.believed()).runs
        return _of(scale * runs[column], runs)

    return measure


def found_rate(
    workload: str, experiment: str = "report-1", key_bytes: int | None = None
) -> Callable[[Tables], Measured | None]:
    """A search's answer from its sealed trials, by the search's own rule: the knee, from the rate surely held
    to the one surely missed (NaN: none)."""

    def measure(tables: Tables) -> Measured | None:
        claim = stable_rate(tables, experiment, workload, key_bytes)
        if claim is None:
            return None
        low, high = claim.interval
        return Measured(
            claim.estimate,
            low,
            math.nan if math.isinf(high) else high,
            claim.runs,
            told=telling.estimate(claim),
            trials=True,
        )

    return measure


def _cache_ratio(workload: str, connections: int) -> Callable[[Tables], Measured | None]:
    def measure(tables: Tables) -> Measured | None:
        rows = comparisons(
            _runs(tables, "report-5", workload, connections=connections),
            "variant",
            "cache_entries=0",
            "cache_entries=5000",
            (),
            share=families.SMALL,
        )
        return _compared(rows, RATE)

    return measure


def _profiled(tables: Tables, *where, **equal) -> Tables:
    """Profiled runs that count: valid, or invalid only for not holding their rate."""
    chosen = _runs(tables, *where, profiled=True, **equal)
    return chosen.only(rates.speaking(chosen))


def profiles(tables: Tables, report: int, method: str, stage: str, rate_rps: float) -> Tables:
    """Our profiled runs that count and ask what ``report`` asked of its ``stage`` at ``rate_rps``; of a
    report whose own experiment is not profiled (PROFILED_BY) those at the nearest rates below and above."""
    experiment = PROFILED_BY.get(report, f"report-{report}")
    ours = published.same_handler(tables.select(experiment=experiment, method=method, profiled=True), stage)
    ours = ours.only(rates.speaking(ours))
    return ours.select(offered_rate_rps=_around(ours, rate_rps) if report in PROFILED_BY else float(rate_rps))


def _around(tables: Tables, rate_rps: float) -> list[float]:
    """The nearest offered rates of ``tables`` at or below ``rate_rps`` and at or above it."""
    known = set(tables.runs["offered_rate_rps"])
    below, above = {rate for rate in known if rate <= rate_rps}, {rate for rate in known if rate >= rate_rps}
    return sorted({*([max(below)] if below else []), *([min(above)] if above else [])})


def _shares_percent(chosen: Tables, event: str, subsystems: tuple[str, ...]) -> pd.Series:
    """Percent of the samples of ``event`` by run that has any."""
    shares = frames.shares(chosen.stacks)
    shares = shares[shares["event"] == event]
    return 100 * shares[shares["subsystem"].isin(subsystems)].groupby("run_id")["share"].sum().reindex(
        shares["run_id"].unique(), fill_value=0.0
    )


def _profile_share(
    event: str, subsystems: tuple[str, ...], *where, **equal
) -> Callable[[Tables], Measured | None]:
    """Percent of the samples of profiled runs, median over them."""

    def measure(tables: Tables) -> Measured | None:
        chosen = _profiled(tables, *where, **equal)
        return _of(_shares_percent(chosen, event, subsystems), chosen.runs)

    return measure


def _profile_share_around(
    event: str, subsystems: tuple[str, ...], report: int, method: str, rate_rps: float
) -> Callable[[Tables], Measured | None]:
    """The same of a report whose own experiment is not profiled, at the rates around its own; on one side of
    it alone they decide nothing."""

    def measure(tables: Tables) -> Measured | None:
        chosen = profiles(tables, report, method, "synchronous", rate_rps)
        percents = _shares_percent(chosen, event, subsystems)
        found, at = (
            _of(percents, chosen.runs, ("offered_rate_rps",)),
            sorted(chosen.select(run_id=list(percents.index)).runs["offered_rate_rps"].unique()),
        )
        if found is None:
            return None
        between = words.interval(found.low, found.high, lambda percent: words.share(percent / 100))
        told = (
            f"{words.share(found.value / 100)}{between} at {words.several([words.rate(rate) for rate in at])}"
        )
        return replace(found, told=told, word=None if at[0] <= rate_rps <= at[-1] else CANNOT_TELL)

    return measure


def _at_found_rate(percentile: float, workload: str) -> Callable[[Tables], Measured | None]:
    """A percentile of the runs at the highest rate that report-1's search tried below the knee."""

    def measure(tables: Tables) -> Measured | None:
        found = found_rate(workload)(tables)
        if found is None:
            return None
        tried = _runs(tables, "report-1", workload).runs["offered_rate_rps"]
        return _percentile(
            percentile, "report-1", workload, offered_rate_rps=tried[tried <= found.value].max()
        )(tables)

    return measure


def _variant_ratio(
    measured: str, workload: str, experiment: str, before: str, after: str, **equal
) -> Callable[[Tables], Measured | None]:
    def measure(tables: Tables) -> Measured | None:
        rows = comparisons(
            _runs(tables, experiment, workload, **equal),
            "variant",
            before,
            after,
            (50.0, 99.0),
            share=families.SMALL,
        )
        return _compared(rows, measured)

    return measure


def _share_ratio(
    event: str, subsystem: str, low_rate: float, high_rate: float, *where
) -> Callable[[Tables], Measured | None]:
    """A subsystem's share at the higher rate over that at the lower, of medians over profiled runs, with the
    least and the most that two of them give; of one run each there is no interval."""

    def measure(tables: Tables) -> Measured | None:
        sides = [_profiled(tables, *where, offered_rate_rps=rate) for rate in (low_rate, high_rate)]
        low, high = (_shares_percent(side, event, (subsystem,)) for side in sides)
        if low.empty or high.empty:
            return None
        low = low.clip(lower=SHARE_LEAST_PERCENT)
        ends = (
            (high.min() / low.max(), high.max() / low.min())
            if len(low) + len(high) > 2
            else (math.nan, math.nan)
        )
        return Measured(
            high.median() / low.median(),
            *ends,
            len(low) + len(high),
            fewest=min(len(low), len(high)),
            mixed=next(filter(None, (not_repeats(side.runs) for side in sides)), ""),
        )

    return measure


def _lock_waiting(*where, **equal) -> Callable[[Tables], Measured | None]:
    """Percent of the measured time that threads waited for locks, all threads together."""

    def measure(tables: Tables) -> Measured | None:
        chosen = _profiled(tables, *where, **equal)
        if chosen.runs.empty:
            return None
        locks = chosen.stacks[chosen.stacks["event"] == "lock"].groupby("run_id")["samples"].sum()
        waited_s = chosen.runs.set_index("run_id")["measured_s"]
        shares = 100 * locks.reindex(waited_s.index, fill_value=0) / 1e9 / waited_s
        result = _of(shares, chosen.runs)
        return (
            replace(result, told=f"{words.share(result.value / 100)} of the time waited for locks")
            if result
            else None
        )

    return measure


def _flushed_bytes(*where, **equal) -> Callable[[Tables], Measured | None]:
    def measure(tables: Tables) -> Measured | None:
        chosen = rates.about_rate(_runs(tables, *where, **equal))
        events = chosen.events
        sizes = [
            json.loads(text).get("bytes_written")
            for text in events.loc[events["kind"] == "flush", "attributes"]
        ]
        known = pd.Series([size for size in sizes if size], dtype=float)
        return (
            None
            if known.empty
            else Measured(
                float(known.median()),
                float(known.quantile(0.05)),
                float(known.quantile(0.95)),
                len(chosen.runs),
                mixed=not_repeats(chosen.runs),
            )
        )

    return measure


def _closed_rate(workload: str, connections: int, variant: str) -> Callable[[Tables], Measured | None]:
    def measure(tables: Tables) -> Measured | None:
        runs = _runs(tables, "report-5", workload, variant, connections=connections).believed().runs
        return _of(runs["achieved_rate_rps"], runs)

    return measure


def _unexpected(workload: str, connections: int, variant: str) -> Callable[[Tables], Measured | None]:
    def measure(tables: Tables) -> Measured | None:
        runs = _runs(tables, "report-5", workload, variant, connections=connections, profiled=False).runs
        runs = runs[runs["outcome"] == "completed"]
        return _of(runs["unexpected_answers"].astype(float), runs)

    return measure


def _ratio_of(after: Measured | None, before: Measured | None) -> Measured | None:
    """Of two searched rates: what their intervals leave open."""
    if after is None or before is None:
        return None
    low = 0.0 if math.isnan(before.high) else after.low / before.high  # whose knee may lie anywhere above
    return Measured(
        after.value / before.value, low, after.high / before.low, after.runs + before.runs, trials=True
    )


_SYNCHRONOUS, _POOL = "handler=selector", "handler=workers"
_R1 = "the reports' machine was a Xeon E5-2620 v3"
_R2_PROFILES = (
    "in report 2's profiles at the rates around this one, since report 1's search is not profiled; on one "
    "side of it alone they decide nothing"
)
_R3_POOL = "report 3's final server is the worker pool"
RULES: dict[str, Rule] = {
    "r1-put-stable": Rule(found_rate("put"), note=_R1),
    "r1-put-stable-second": Rule(found_rate("put")),
    "r1-put-stable-third": Rule(found_rate("put")),
    "r1-get-stable": Rule(found_rate("get"), note=_R1),
    "r1-put-p90": Rule(_at_found_rate(90.0, "put"), note="ours at the highest rate tried below our knee"),
    "r1-get-p90": Rule(_at_found_rate(90.0, "get"), note="ours at the highest rate tried below our knee"),
    "r1-put-network": Rule(
        _profile_share_around("cpu", ("store",), 1, "PUT", 11250.0), note=f"store share {_R2_PROFILES}"
    ),
    "r1-get-alloc": Rule(
        _profile_share_around("alloc", ("store",), 1, "GET", 8906.0),
        note=f"store share {_R2_PROFILES}; our lookup copies the value once and keeps no iterator",
    ),
    "r1-heat-gaps": Rule(
        _column("service_cpu_share", "report-2", "put", scale=100.0, offered_rate_rps=2000.0),
        note="ours: CPU of the service at 2 000/s, of one core",
    ),
    "r1-async-helps": Rule(
        _variant_ratio("p99", "put", "report-3", _SYNCHRONOUS, _POOL),
        "faster",
        "ours: p99 of the pool over that of the synchronous handler, at 20 000/s",
    ),
    "r2-put-2000-held": Rule(
        _column("achieved_rate_rps", "report-2", "put", offered_rate_rps=2000.0), "held"
    ),
    "r2-put-2000-stdev": Rule(
        _column("response_stdev_us", "report-2", "put", offered_rate_rps=2000.0),
        note="most of theirs is wrk2's timer of a millisecond",
    ),
    "r2-put-2000-p999": Rule(_percentile(99.9, "report-2", "put", offered_rate_rps=2000.0)),
    "r2-put-20000-not-held": Rule(
        _column("achieved_rate_rps", "report-2", "put", offered_rate_rps=20000.0),
        "not held",
        "ours on one connection; theirs is not said",
    ),
    "r2-put-20000-mean": Rule(
        _column("response_mean_us", "report-2", "put", offered_rate_rps=20000.0),
        note="past saturation a mean grows with the length of the run: theirs 60 s",
    ),
    "r2-put-20000-flush": Rule(
        _profile_share("cpu", ("flush", "compaction"), "report-2", "put", offered_rate_rps=20000.0),
        note="ours: flush and compaction",
    ),
    "r2-put-idle-falls": Rule(
        _share_ratio("cpu", "idle", 2000.0, 20000.0, "report-2", "put"),
        "falls",
        "ours: share at 20 000/s over that at 2 000/s, medians over profiles",
    ),
    "r2-put-alloc-grows": Rule(
        _share_ratio("alloc", "store", 2000.0, 20000.0, "report-2", "put"),
        "rises",
        "ours: share at 20 000/s over that at 2 000/s, medians over profiles",
    ),
    "r2-get-2000-p90": Rule(
        _percentile(90.0, "report-2", "get", offered_rate_rps=2000.0),
        note="printed there and passed over: a stall of over a second within 60 s",
    ),
    "r2-get-2000-lookup": Rule(
        _profile_share("cpu", ("store",), "report-2", "get", offered_rate_rps=2000.0),
        note="our tables have a bloom filter and a block index; theirs are searched one by one",
    ),
    "r3-put-20000-held": Rule(_column("achieved_rate_rps", "report-3", "put", _POOL)),
    "r3-put-p50": Rule(_percentile(50.0, "report-3", "put", _POOL)),
    "r3-put-p99": Rule(_percentile(99.0, "report-3", "put", _POOL), note=_R3_POOL),
    "r3-put-p999": Rule(_percentile(99.9, "report-3", "put", _POOL), note=_R3_POOL),
    "r3-put-p99999": Rule(
        _percentile(99.9, "report-3", "put", _POOL),
        note="ours: p99.9, the last percentile that our runs carry",
    ),
    "r3-get-20000-held": Rule(
        _column("achieved_rate_rps", "report-3", "get", _POOL, offered_rate_rps=20000.0),
        "held",
        note=_R3_POOL,
    ),
    "r3-get-p50": Rule(_percentile(50.0, "report-3", "get", _POOL)),
    "r3-get-p99": Rule(_percentile(99.0, "report-3", "get", _POOL), note=_R3_POOL),
    "r3-get-p999": Rule(_percentile(99.9, "report-3", "get", _POOL), note=_R3_POOL),
    "r3-pool-faster": Rule(
        _variant_ratio("p50", "put", "report-3", _SYNCHRONOUS, _POOL),
        "faster",
        "ours: median of the pool over that of the synchronous handler; both flush on a thread of their own",
    ),
    "r3-get-unchanged": Rule(
        _variant_ratio("p50", "get", "report-3", _SYNCHRONOUS, _POOL),
        "unchanged",
        "ours: median of the pool over that of the synchronous handler",
    ),
    "r3-put-flush-apart": Rule(
        _profile_share("cpu", ("flush",), "report-3", "put", _POOL),
        note="our flush has a thread of its own under every handler, and its entries are sorted already",
    ),
    "r3-put-locks": Rule(
        _lock_waiting("report-3", "put", _POOL),
        "hardly any",
        "their samples and our waiting time have no common unit; hardly any is under 1 % of the time",
    ),
    "r3-get-locks": Rule(
        _lock_waiting("report-3", "get", _POOL),
        "hardly any",
        "their samples and our waiting time have no common unit; hardly any is under 1 % of the time",
    ),
    "r4-stable": Rule(
        found_rate("put", "report-4", 8),
        note="ours by search for a mean of at most 1 ms, PUT, one connection",
    ),
    "r4-stable-doubled": Rule(
        found_rate("put", "report-4", 16),
        note="ours by search for a mean of at most 1 ms, PUT, one connection",
    ),
    "r4-doubling": Rule(
        lambda tables: _ratio_of(
            found_rate("put", "report-4", 16)(tables), found_rate("put", "report-4", 8)(tables)
        ),
        note="ours: the knees of the two searches, lowest and highest that they leave open",
    ),
    "r4-syscalls": Rule(
        _profile_share("cpu", ("socket read", "response", "idle"), "report-2", "put"),
        "at least",
        "ours: reading the socket, answering and waiting for events, from report 2's question",
    ),
    "r4-flush-size": Rule(
        _flushed_bytes("report-4", "put"),
        "differs",
        "ours: bytes of a table against a threshold of 1 MiB that counts the memtable with its "
        "objects: no bug, another unit",
    ),
    "r5-repeated-get-c1": Rule(_cache_ratio("repeated_get", 1), "ratio"),
    "r5-repeated-get-c2": Rule(_cache_ratio("repeated_get", 2), "ratio"),
    "r5-repeated-get-c4": Rule(_cache_ratio("repeated_get", 4), "ratio"),
    "r5-unique-get": Rule(_cache_ratio("unique_get", 1), "ratio"),
    "r5-unique-put": Rule(_cache_ratio("unique_put", 1), "ratio"),
    "r5-repeated-put": Rule(_cache_ratio("repeated_put", 1), "ratio"),
    "r5-repeated-get-falls": Rule(
        _closed_rate("repeated_get", 4, "cache_entries=0"), note="ours: all threads together"
    ),
    "r5-closed-loop-latency": Rule(
        _percentile(99.0, "report-5", "repeated_get", "cache_entries=5000", connections=1),
        note="ours: as theirs, the closed loop's",
    ),
    "r5-non-2xx": Rule(
        _unexpected("repeated_get", 4, "cache_entries=0"), note="ours: per run, every answer checked"
    ),
}
