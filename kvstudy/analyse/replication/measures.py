"""How a claim is measured: each of these makes a function from our tables to our number.

Latencies rest on believed runs, rates on informative runs (``rates``), shares on profiled runs.
"""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import pandas as pd

from kvstudy.analyse import frames, percentile_grid, published, rates, validity
from kvstudy.analyse.answers.service import stable_rate
from kvstudy.analyse.comparison import families
from kvstudy.analyse.comparison.intervals import median_interval
from kvstudy.analyse.comparison.outcomes import allowed
from kvstudy.analyse.comparison.words import CANNOT_TELL, LOST_MORE, SAME
from kvstudy.analyse.configuration import RATE, comparisons, why_not_repeats
from kvstudy.analyse.replication.measured import HIGHER, LOWER, Measured
from kvstudy.analyse.tables import Tables

PROFILED_BY = {
    1: "report-2"
}  # report 1's search is not profiled: report 2 asks the same of the same service, at two rates
SHARE_LEAST_PERCENT = 0.1  # what a profile without a sample of a subsystem may have missed


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
    return replace(found, mixed=why_not_repeats(runs, along)) if found is not None else None


def _with_lost(
    found: Measured | None, chosen: Tables, used: Iterable[str], worse: str = ""
) -> Measured | None:
    """``found`` of the runs ``used``; of ``chosen`` those that the service made invalid are not among them,
    and would have made the number ``worse``."""
    return found and replace(found, lost=_lost(chosen, used), worse=worse)


def _lost(chosen: Tables, used: Iterable[str]) -> int:
    runs = chosen.runs
    return int(((runs["excluded"] == validity.SERVICE) & ~runs["run_id"].isin(set(used))).sum())


def _flattered(row: pd.Series) -> str:
    """Why the ratio says nothing favourable: LOST_MORE, whether or not a word was refused for it."""
    lost = (row["invalid_before"], row["of_before"], row["invalid_after"], row["of_after"])
    return LOST_MORE if allowed(SAME, *(int(count) for count in lost)) != SAME else ""


def _compared(rows: pd.DataFrame, measure: str) -> Measured | None:
    """Of one comparison; several, as of two builds, decide nothing."""
    rows = rows[rows["measure"] == measure]
    if rows.empty:
        return None
    row, fewest = rows.iloc[-1], int(rows[["runs_before", "runs_after"]].min(axis=None))
    mixed = (
        f"{len(rows)} comparisons, of runs that share no median "
        f"({'; '.join(filter(None, rows['differs'])) or 'at several places'})"
        if len(rows) > 1
        else ""
    )
    return Measured(
        row["ratio"],
        row["low"],
        row["high"],
        int(row["runs_before"] + row["runs_after"]),
        row["word"],
        same_within=row["same_within"],
        fewest=fewest,
        mixed=mixed,
        flattered=_flattered(row),
    )


def _runs(tables: Tables, experiment: str, workload: str, variant: str | None = None, **equal) -> Tables:
    chosen = tables.select(experiment=experiment, workload=workload, **equal)
    return (
        chosen
        if variant is None
        else chosen.only(chosen.runs.loc[chosen.runs["variant"].str.contains(variant, regex=False), "run_id"])
    )


def percentile_of(percentile: float, *where, **equal) -> Callable[[Tables], Measured | None]:
    def measure(tables: Tables) -> Measured | None:
        asked = _runs(tables, *where, **equal).select(profiled=False)
        chosen = asked.believed()
        points = chosen.percentiles
        points = points[
            (points["latency_kind"] == "response")
            & percentile_grid.at(points["percentile"], percentile)
            & points["latency_us"].notna()
        ]
        found = _of(points["latency_us"], chosen.runs[chosen.runs["run_id"].isin(points["run_id"])])
        return _with_lost(found, asked, chosen.runs["run_id"], HIGHER)

    return measure


def column(name: str, *where, scale: float = 1.0, **equal) -> Callable[[Tables], Measured | None]:
    """The rate over the informative runs: what one that did not hold it achieved is still what it
    achieved. All else over believed runs: the latency of an overload grows with the length of the run."""

    def measure(tables: Tables) -> Measured | None:
        chosen = _runs(tables, *where, **equal).select(profiled=False)
        runs = (rates.informative_runs(chosen) if name == "achieved_rate_rps" else chosen.believed()).runs
        worse = LOWER if name == "achieved_rate_rps" else HIGHER if name.startswith("response_") else ""
        return _with_lost(_of(scale * runs[name], runs), chosen, runs["run_id"], worse)

    return measure


def held_rate(*where, **equal) -> Callable[[Tables], Measured | None]:
    """The rate over all runs that say whether theirs was held; one that the service lost achieved nothing, or
    a rate would be held by those who survived it."""

    def measure(tables: Tables) -> Measured | None:
        runs = rates.runs_with_rate_outcome(_runs(tables, *where, **equal))
        return _of(runs["achieved_rate_rps"], runs)

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
            trials=True,
            knee=claim,
        )

    return measure


def cache_ratio(workload: str, connections: int) -> Callable[[Tables], Measured | None]:
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
    return chosen.only(rates.informative_run_ids(chosen))


def comparable_profiled_runs(
    tables: Tables, report: int, method: str, stage: str, rate_rps: float
) -> tuple[Tables, int]:
    """Our profiled runs that count and ask what ``report`` asked of its ``stage`` at ``rate_rps``; of a
    report whose own experiment is not profiled (PROFILED_BY) those at the nearest rates below and above. And
    how many the service lost at these rates."""
    experiment = PROFILED_BY.get(report, f"report-{report}")
    asked = published.same_handler(tables.select(experiment=experiment, method=method, profiled=True), stage)
    counting = set(rates.informative_run_ids(asked))
    lost = set(asked.runs.loc[asked.runs["excluded"] == validity.SERVICE, "run_id"])
    at = _around(asked.only(counting | lost), rate_rps) if report in PROFILED_BY else float(rate_rps)
    there = asked.select(offered_rate_rps=at)
    return there.only(counting), _lost(there, counting)


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


def profile_share(
    event: str, subsystems: tuple[str, ...], *where, along: tuple[str, ...] = (), **equal
) -> Callable[[Tables], Measured | None]:
    """Percent of the samples of profiled runs, median over them; ``along``: of runs that may differ in
    these."""

    def measure(tables: Tables) -> Measured | None:
        chosen = _profiled(tables, *where, **equal)
        found = _of(_shares_percent(chosen, event, subsystems), chosen.runs, along)
        return _with_lost(found, _runs(tables, *where, profiled=True, **equal), chosen.runs["run_id"])

    return measure


def profile_share_around(
    event: str, subsystems: tuple[str, ...], report: int, method: str, rate_rps: float
) -> Callable[[Tables], Measured | None]:
    """The same of a report whose own experiment is not profiled, at the rates around its own; on one side of
    it alone they decide nothing."""

    def measure(tables: Tables) -> Measured | None:
        chosen, lost = comparable_profiled_runs(tables, report, method, "synchronous", rate_rps)
        percents = _shares_percent(chosen, event, subsystems)
        found, at = (
            _of(percents, chosen.runs, ("offered_rate_rps",)),
            sorted(chosen.select(run_id=list(percents.index)).runs["offered_rate_rps"].unique()),
        )
        if found is None:
            return None
        word = None if at[0] <= rate_rps <= at[-1] else CANNOT_TELL
        return replace(found, at_rates_rps=tuple(at), word=word, lost=lost)

    return measure


def at_found_rate(percentile: float, workload: str) -> Callable[[Tables], Measured | None]:
    """A percentile of the runs at the highest rate that report-1's search tried below the knee."""

    def measure(tables: Tables) -> Measured | None:
        found = found_rate(workload)(tables)
        if found is None:
            return None
        tried = _runs(tables, "report-1", workload).runs["offered_rate_rps"]
        return percentile_of(
            percentile, "report-1", workload, offered_rate_rps=tried[tried <= found.value].max()
        )(tables)

    return measure


def variant_ratio(
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


def share_ratio(
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
        asked = [
            _runs(tables, *where, profiled=True, offered_rate_rps=rate) for rate in (low_rate, high_rate)
        ]
        return Measured(
            high.median() / low.median(),
            *ends,
            len(low) + len(high),
            fewest=min(len(low), len(high)),
            mixed=next(filter(None, (why_not_repeats(side.runs) for side in sides)), ""),
            lost=sum(_lost(of, side.runs["run_id"]) for of, side in zip(asked, sides, strict=True)),
        )

    return measure


def lock_waiting(*where, **equal) -> Callable[[Tables], Measured | None]:
    """Percent of the measured time that threads waited for locks, all threads together."""

    def measure(tables: Tables) -> Measured | None:
        chosen = _profiled(tables, *where, **equal)
        if chosen.runs.empty:
            return None
        locks = chosen.stacks[chosen.stacks["event"] == "lock"].groupby("run_id")["samples"].sum()
        waited_s = chosen.runs.set_index("run_id")["measured_s"]
        shares = 100 * locks.reindex(waited_s.index, fill_value=0) / 1e9 / waited_s
        result = _of(shares, chosen.runs)
        asked = _runs(tables, *where, profiled=True, **equal)
        return _with_lost(result and replace(result, of_time=True), asked, chosen.runs["run_id"], HIGHER)

    return measure


def flushed_bytes(
    *where, key_bytes: int, along: tuple[str, ...], **equal
) -> Callable[[Tables], Measured | None]:
    """Bytes of the tables that flushes wrote, median over flushes; of keys of ``key_bytes`` alone."""

    def measure(tables: Tables) -> Measured | None:
        chosen = rates.informative_runs(_runs(tables, *where, **equal))
        sizes_of_keys = [json.loads(text).get("key_bytes") for text in chosen.runs["workload_args"]]
        chosen = chosen.only(chosen.runs.loc[[size == key_bytes for size in sizes_of_keys], "run_id"])
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
                mixed=why_not_repeats(chosen.runs, along),
            )
        )

    return measure


def closed_rate(workload: str, connections: int, variant: str) -> Callable[[Tables], Measured | None]:
    def measure(tables: Tables) -> Measured | None:
        chosen = _runs(tables, "report-5", workload, variant, connections=connections, profiled=False)
        runs = chosen.believed().runs
        return _with_lost(_of(runs["achieved_rate_rps"], runs), chosen, runs["run_id"], LOWER)

    return measure


def unexpected(workload: str, connections: int, variant: str) -> Callable[[Tables], Measured | None]:
    def measure(tables: Tables) -> Measured | None:
        chosen = _runs(tables, "report-5", workload, variant, connections=connections, profiled=False)
        runs = chosen.runs[chosen.runs["outcome"] == "completed"]
        found = _of(runs["unexpected_answers"].astype(float), runs)
        return _with_lost(found, chosen, runs["run_id"], HIGHER)

    return measure


def ratio_of(after: Measured | None, before: Measured | None) -> Measured | None:
    """Of two searched rates: what their intervals leave open."""
    if after is None or before is None:
        return None
    low = 0.0 if math.isnan(before.high) else after.low / before.high  # whose knee may lie anywhere above
    return Measured(
        after.value / before.value, low, after.high / before.low, after.runs + before.runs, trials=True
    )
