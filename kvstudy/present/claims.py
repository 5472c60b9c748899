"""The published claims beside our runs, each judged by a rule that is written here and nowhere bent.

    judged = judge(published, tables)       one row per claim: what was published, what we measured, the verdict

Verdicts: *mistaken* (the report contradicts its own output, or measured something else; data/published says why), *unproven* (its
output cannot carry it), *reproduced*, *not reproduced*, *cannot tell* (too few runs or an interval that covers both), *not
measured* (no valid run of ours). Rules for the middle three, by what is claimed:

    a number    ours lies within a factor of two of it, either way: another machine, JVM and generator stand between them
    held        a rate was held if the median achieved rate is 99 % of it
    a ratio     the comparison over runs says the same word, faster or slower
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from kvstudy.analyse import frames
from kvstudy.analyse.configuration import comparisons
from kvstudy.analyse.published import Published
from kvstudy.analyse.statistics import CANNOT_TELL, FASTER, SLOWER, median_interval
from kvstudy.analyse.tables import Tables
from kvstudy.present import words

REPRODUCED, NOT_REPRODUCED, MISTAKEN, UNPROVEN, NOT_MEASURED = "reproduced", "not reproduced", "mistaken", "unproven", "not measured"
VERDICTS = (REPRODUCED, NOT_REPRODUCED, CANNOT_TELL, MISTAKEN, UNPROVEN, NOT_MEASURED)
FACTOR = 2.0
HELD_SHARE = 0.99
OBJECTIVE_US = 1000.0  # report 1: held means a mean of at most 1 ms

COLUMNS = ["claim", "report", "method", "says", "quantity", "published", "measured", "low", "high", "runs", "verdict", "note"]


@dataclass(frozen=True)
class Measured:
    """Our number for a claim, in the claim's unit, with its interval over ``runs`` runs; ``word`` only for ratios."""

    value: float
    low: float
    high: float
    runs: int
    word: str | None = None


def judge(published: Published, tables: Tables) -> pd.DataFrame:
    """One row per published claim, in its order: COLUMNS; ``measured`` NaN where we have no number."""
    rows = []
    for claim in published.claims.itertuples():
        rule = RULES.get(claim.claim)
        measured = rule.measure(tables) if rule is not None else None
        numbers = (measured.value, measured.low, measured.high, measured.runs) if measured is not None else (math.nan, math.nan, math.nan, 0)
        note = claim.why_mistaken if isinstance(claim.why_mistaken, str) else (rule.note if rule is not None else "our study has no run that could tell")
        rows.append([claim.claim, claim.report, claim.method, claim.says, claim.quantity, claim.value, *numbers, _verdict(claim, rule, measured), note])
    return pd.DataFrame(rows, columns=COLUMNS)


def told(judged: pd.DataFrame) -> pd.DataFrame:
    """``judge``'s rows as text for people."""
    return pd.DataFrame(
        [
            {
                "verdict": row.verdict, "report": row.report, "method": row.method, "claim": row.says, "published": number(row.quantity, row.published),
                "measured": _interval(row), "runs": row.runs, "why": row.note,
            }
            for row in judged.itertuples()
        ]
    )  # fmt: skip


def number(quantity, value: float) -> str:
    """A claim's number with its unit."""
    if not isinstance(quantity, str) or value is None or math.isnan(value):
        return words.MISSING
    if quantity.endswith("_us"):
        return words.latency(value)
    if quantity.endswith("_rps"):
        return words.rate(value)
    if quantity.endswith("_share"):
        return words.share(value / 100)
    return words.times(value) if quantity == "rate_ratio" else words.count(value)


def _interval(row) -> str:
    if math.isnan(row.measured):
        return words.MISSING
    return number(row.quantity, row.measured) + words.interval(row.low, row.high, lambda value: number(row.quantity, value))


@dataclass(frozen=True)
class _Rule:
    """How a claim is measured, and by which kind of rule it is judged: number, held, not held, ratio."""

    measure: Callable[[Tables], Measured | None]
    kind: str = "number"
    note: str = ""


def _verdict(claim, rule: _Rule | None, measured: Measured | None) -> str:
    if claim.mistaken == "yes":
        return MISTAKEN
    if claim.mistaken == UNPROVEN:
        return UNPROVEN
    if rule is None or measured is None:
        return NOT_MEASURED
    if rule.kind == "number":
        return REPRODUCED if 1 / FACTOR <= measured.value / claim.value <= FACTOR else NOT_REPRODUCED
    if rule.kind in ("held", "not held"):
        held = measured.value >= HELD_SHARE * _offered(claim.claim)
        return REPRODUCED if held == (rule.kind == "held") else NOT_REPRODUCED
    if measured.word == CANNOT_TELL:
        return CANNOT_TELL
    return REPRODUCED if measured.word == (FASTER if claim.value > 1 else SLOWER) else NOT_REPRODUCED


def _offered(claim: str) -> float:
    """The rate in a claim's name: r2-put-2000-held."""
    return float(next(part for part in claim.split("-") if part.isdigit()))


def _over(values: pd.Series) -> Measured | None:
    known = values.dropna()
    if known.empty:
        return None
    interval = median_interval(known)
    return Measured(interval.estimate, interval.low, interval.high, interval.runs)


def _runs(tables: Tables, experiment: str, workload: str, variant: str | None = None, **equal) -> Tables:
    chosen = tables.select(experiment=experiment, workload=workload, **equal)
    return chosen if variant is None else chosen.only(chosen.runs.loc[chosen.runs["variant"].str.contains(variant, regex=False), "run_id"])


def _percentile(percentile: float, *where, **equal) -> Callable[[Tables], Measured | None]:
    def measure(tables: Tables) -> Measured | None:
        points = _runs(tables, *where, **equal).believed().percentiles
        return _over(points.loc[(points["latency_kind"] == "response") & np.isclose(points["percentile"], percentile), "latency_us"])

    return measure


def _column(column: str, *where, **equal) -> Callable[[Tables], Measured | None]:
    """Over all completed runs: what a run that did not hold its rate achieved is still what it achieved."""

    def measure(tables: Tables) -> Measured | None:
        runs = _runs(tables, *where, profiled=False, **equal).runs
        return _over(runs.loc[runs["outcome"] == "completed", column])

    return measure


def _found_rate(workload: str, experiment: str = "report-1", key_bytes: int | None = None) -> Callable[[Tables], Measured | None]:
    """A search's answer: the highest rate with at least two good trials and no more bad than good, up to the lowest refused above it."""

    def measure(tables: Tables) -> Measured | None:
        runs = _runs(tables, experiment, workload, profiled=False).runs
        if key_bytes is not None:
            runs = runs[runs["workload_args"].str.contains(f'"key_bytes": {key_bytes}')]
        runs = runs[(runs["outcome"] == "completed") & ~runs["closed_loop"]]
        good = (runs["response_mean_us"] <= OBJECTIVE_US) & (runs["achieved_rate_rps"] >= HELD_SHARE * runs["offered_rate_rps"])
        trials = runs.assign(good=good).groupby("offered_rate_rps")["good"].agg(["sum", "size"])
        kept = trials[(trials["sum"] >= 2) & (2 * trials["sum"] >= trials["size"])]
        if kept.empty:
            return None
        best = float(kept.index.max())
        refused = [rate for rate in trials.index if rate > best and 2 * trials.loc[rate, "sum"] < trials.loc[rate, "size"]]
        return Measured(best, best, float(min(refused)) if refused else math.nan, int(trials["size"].sum()))

    return measure


def _cache_ratio(workload: str, connections: int) -> Callable[[Tables], Measured | None]:
    def measure(tables: Tables) -> Measured | None:
        rows = comparisons(_runs(tables, "report-5", workload, connections=connections), "variant", "cache_entries=0", "cache_entries=5000", ())
        if rows.empty:
            return None
        row = rows.iloc[0]
        return Measured(row["ratio"], row["low"], row["high"], int(row["runs_before"] + row["runs_after"]), row["word"])

    return measure


def _profile_share(event: str, subsystems: tuple[str, ...], *where, **equal) -> Callable[[Tables], Measured | None]:
    """Percent of the samples of profiled runs, median over them."""

    def measure(tables: Tables) -> Measured | None:
        shares = frames.shares(_runs(tables, *where, profiled=True, **equal).stacks)
        shares = shares[shares["event"] == event]
        if shares.empty:
            return None
        per_run = shares[shares["subsystem"].isin(subsystems)].groupby("run_id")["share"].sum().reindex(shares["run_id"].unique(), fill_value=0.0)
        return _over(100 * per_run)

    return measure


_SYNCHRONOUS = "handler=selector"
RULES: dict[str, _Rule] = {
    "r1-put-stable": _Rule(_found_rate("put"), note="the reports' machine was a Xeon E5-2620 v3"),
    "r1-get-stable": _Rule(_found_rate("get"), note="the reports' machine was a Xeon E5-2620 v3"),
    "r1-put-network": _Rule(_profile_share("cpu", ("store",), "report-2", "put"), note="store share of report 2's profiles: report 1's search is not profiled"),
    "r1-get-alloc": _Rule(_profile_share("alloc", ("store",), "report-2", "get"), note="store share of report 2's profiles: report 1's search is not profiled"),
    "r2-put-2000-held": _Rule(_column("achieved_rate_rps", "report-2", "put", offered_rate_rps=2000.0), "held"),
    "r2-put-2000-p999": _Rule(_percentile(99.9, "report-2", "put", offered_rate_rps=2000.0)),
    "r2-put-20000-not-held": _Rule(_column("achieved_rate_rps", "report-2", "put", offered_rate_rps=20000.0), "not held"),
    "r2-put-20000-mean": _Rule(_column("response_mean_us", "report-2", "put", offered_rate_rps=20000.0)),
    "r2-put-20000-flush": _Rule(_profile_share("cpu", ("flush",), "report-2", "put", offered_rate_rps=20000.0)),
    "r2-get-2000-lookup": _Rule(_profile_share("cpu", ("store",), "report-2", "get", offered_rate_rps=2000.0)),
    "r3-put-20000-held": _Rule(_column("achieved_rate_rps", "report-3", "put", _SYNCHRONOUS)),
    "r3-put-p50": _Rule(_percentile(50.0, "report-3", "put", _SYNCHRONOUS)),
    "r3-put-p999": _Rule(_percentile(99.9, "report-3", "put", "handler=workers"), note="report 3's final server is the worker pool"),
    "r3-get-p50": _Rule(_percentile(50.0, "report-3", "get", "handler=workers")),
    "r3-get-p999": _Rule(_percentile(99.9, "report-3", "get", "handler=workers"), note="report 3's final server is the worker pool"),
    "r3-put-flush-apart": _Rule(_profile_share("cpu", ("flush",), "report-3", "put", "handler=workers"), note="our flush has a thread of its own under every handler"),
    "r4-stable": _Rule(_found_rate("put", "report-4", 8)),
    "r4-stable-doubled": _Rule(_found_rate("put", "report-4", 16)),
    "r5-repeated-get-c1": _Rule(_cache_ratio("repeated_get", 1), "ratio"),
    "r5-repeated-get-c2": _Rule(_cache_ratio("repeated_get", 2), "ratio"),
    "r5-repeated-get-c4": _Rule(_cache_ratio("repeated_get", 4), "ratio"),
    "r5-unique-get": _Rule(_cache_ratio("unique_get", 1), "ratio"),
    "r5-unique-put": _Rule(_cache_ratio("unique_put", 1), "ratio"),
    "r5-repeated-put": _Rule(_cache_ratio("repeated_put", 1), "ratio"),
}
