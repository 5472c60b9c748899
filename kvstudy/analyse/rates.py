"""Which runs may say whether a rate was held.

A run that did not keep up is invalid for latencies, by its own checks, and yet it alone shows a
saturation point. A run that another program disturbed, or whose generator was the limit, says nothing about
the service at all. So:

    informative_runs(tables)           the runs that failed nothing, or did not hold their rate and failed
                                       only what follows from that
    runs_with_rate_outcome(tables)     these, and the runs that the service itself lost, which did not hold
                                       theirs
    with_rate_outcome(tables, runs)    any runs, with what each says of its rate; saturation_of(runs, by) of
                                       these
    held_rates(tables)                 of each combination the highest rate held and the lowest not held
    found = knee_of(trials)            what the trials of a search say about the knee, by the search's own
                                       rule
    held_by_rate(trials)               how often each rate is held, by the same rule

Saturation point of a group of runs: the lowest offered rate at which the median achieved rate over its
repeats is under 99 % of the offered one. None when every offered rate was achieved: the capacity then lies
above the data, and nothing is extrapolated.
"""

import json

import numpy as np
import pandas as pd

from kvstudy.analyse.configuration import COMBINATION, CONFIGURATION, configured
from kvstudy.analyse.tables import Tables
from kvstudy.analyse.validity import ACHIEVED_SHARE_MIN, FOLLOWS_FROM_OVERLOAD, SERVICE
from kvstudy.plan.objective import Answer
from kvstudy.plan.search import Found, Trial, found_in, held_shares

_ORDER = ["experiment", "label", "variant", "workload", "data", "connections", "threads", COMBINATION]
_POINT = ["highest_held_rps", "saturation_rps", "runs", "fewest"]


def informative_runs(tables: Tables) -> Tables:
    """The completed latency runs, at a rate, whose achieved rate is the service's own."""
    runs = tables.runs[
        ~tables.runs["profiled"] & ~tables.runs["closed_loop"] & (tables.runs["outcome"] == "completed")
    ]
    return tables.only(set(runs["run_id"]) & informative_run_ids(tables))


def informative_run_ids(tables: Tables) -> set[str]:
    """Ids of the runs of ``tables`` that say whether their rate was held."""
    failed = tables.validity[tables.validity["verdict"] == "FAIL"].groupby("run_id")["check"].agg(set)
    verdicts = tables.runs.set_index("run_id")["verdict"]
    return {
        run_id
        for run_id, verdict in verdicts.items()
        if verdict != "FAIL"
        or ("rate_held" in failed.get(run_id, set()) and failed[run_id] <= FOLLOWS_FROM_OVERLOAD)
    }


def runs_with_rate_outcome(tables: Tables) -> pd.DataFrame:
    """The configured latency runs, at a rate, that say whether it was held: the informative ones, and
    those that the service itself made invalid, by errors, wrong answers or its own death, which achieved
    nothing. Without these a rate would be held by those who survived it."""
    runs = tables.runs[~tables.runs["profiled"] & ~tables.runs["closed_loop"]]
    informative = runs["run_id"].isin(informative_run_ids(tables)) & (runs["outcome"] == "completed")
    lost = ~informative & (runs["excluded"] == SERVICE)
    return configured(
        runs.assign(achieved_rate_rps=runs["achieved_rate_rps"].mask(lost, 0.0))[informative | lost]
    )


def saturation_points(runs: pd.DataFrame, group_by: list[str]) -> pd.DataFrame:
    """One row per group of open-loop runs: the group's columns, ``highest_held_rps`` and ``saturation_rps``
    (NaN where none).

    ``highest_held_rps`` is the highest offered rate below the saturation point that was achieved. ``runs``:
    how many there are up to the saturation point, ``fewest``: at one rate; fewer than MIN_RUNS decide
    nothing.
    """
    open_loop = runs[~runs["closed_loop"]]
    medians = open_loop.groupby([*group_by, "offered_rate_rps"], as_index=False).agg(
        achieved_rate_rps=("achieved_rate_rps", "median"), runs=("achieved_rate_rps", "size")
    )
    medians["held"] = medians["achieved_rate_rps"] >= ACHIEVED_SHARE_MIN * medians["offered_rate_rps"]
    rows = []
    for key, group in medians.groupby(group_by):
        lost = group.loc[~group["held"], "offered_rate_rps"]
        saturation = lost.min() if len(lost) else np.nan
        held = group.loc[group["held"] & ~(group["offered_rate_rps"] >= saturation), "offered_rate_rps"]
        counted = group.loc[~(group["offered_rate_rps"] > saturation), "runs"]
        rows.append([*key, held.max() if len(held) else np.nan, saturation, counted.sum(), counted.min()])
    return pd.DataFrame(rows, columns=[*group_by, *_POINT])


def with_rate_outcome(tables: Tables, runs: pd.DataFrame) -> pd.DataFrame:
    """``runs``, rows of ``tables.runs``, configured; ``is_informative``: whether the run says if its rate
    was held (``runs_with_rate_outcome``); ``counted_rate_rps``: the rate that counts for that, else NaN."""
    known = runs_with_rate_outcome(tables).set_index("run_id")["achieved_rate_rps"]
    runs = configured(runs)
    return runs.assign(
        is_informative=runs["run_id"].isin(known.index),
        counted_rate_rps=runs["run_id"].map(known).astype(float),
    )


def saturation_of(runs: pd.DataFrame, group_by: list[str]) -> pd.DataFrame:
    """``saturation_points`` of runs ``with_rate_outcome``."""
    informative = runs[runs["is_informative"]]
    return saturation_points(informative.assign(achieved_rate_rps=informative["counted_rate_rps"]), group_by)


def held_rates(tables: Tables) -> pd.DataFrame:
    """``saturation_points`` of each combination, of ``runs_with_rate_outcome``, beside what its runs have
    in common: experiment, workload, connections and every other column of a configuration but the offered
    rate."""
    runs = runs_with_rate_outcome(tables)
    columns = [name for name in (COMBINATION, *CONFIGURATION) if name != "offered_rate_rps"]
    if runs.empty:
        return pd.DataFrame(columns=[*columns, *_POINT])
    common = runs.drop_duplicates(COMBINATION)[columns]
    found = common.merge(saturation_points(runs, [COMBINATION]), on=COMBINATION)
    return found.sort_values([name for name in _ORDER if name in found], ignore_index=True)


def each_search(runs: pd.DataFrame) -> list[pd.DataFrame]:
    """The trials among ``runs`` by the search that they are of, the one made last at the end: a search is one
    line of runs and one objective."""
    trials = runs[runs["search"] != ""]
    if trials.empty:
        return []
    trials = configured(trials)
    goals = [json.dumps(json.loads(text).get("objective", {}), sort_keys=True) for text in trials["search"]]
    parts = [
        part
        for _, part in trials.groupby([trials[COMBINATION], pd.Series(goals, index=trials.index)], sort=True)
    ]
    return sorted(parts, key=lambda part: (part["start_utc"].max(), part["run_id"].max()))


def knee_of(runs: pd.DataFrame) -> Found:
    """``runs``: those rows of the table ``runs`` that are the trials of one search; none of them is left out
    for its checks."""
    trials, lowest, highest, precision = _search_of(runs)
    return found_in(trials, lowest, highest, precision)


def held_by_rate(runs: pd.DataFrame, points: int = 60) -> pd.DataFrame:
    """How often a fresh service holds a rate, by the same posterior as ``knee_of``: one row per rate that was
    tried, and for drawing ``points`` between the lowest and the highest of them. ``held`` of ``trials`` held
    it (0 of 0 between); ``share`` of trials, with its interval ``low`` … ``high``.
    """
    trials, lowest, highest, _ = _search_of(runs)
    tried = (
        runs.loc[runs["answer"] != Answer.UNKNOWN.value]
        .groupby("offered_rate_rps")["answer"]
        .agg(trials="size", held=lambda answers: int((answers == Answer.HELD.value).sum()))
    )
    if tried.empty:
        return pd.DataFrame(columns=["offered_rate_rps", "trials", "held", "low", "share", "high"])
    between = np.linspace(tried.index.min(), tried.index.max(), points) if len(tried) > 1 else []
    offered = sorted({float(rate) for rate in (*tried.index, *between)})
    shares = pd.DataFrame(held_shares(trials, lowest, highest, offered), columns=["low", "share", "high"])
    counts = tried.reindex(offered, fill_value=0).reset_index(drop=True)
    return pd.concat([pd.Series(offered, name="offered_rate_rps"), counts, shares], axis=1)


def _search_of(runs: pd.DataFrame) -> tuple[list[Trial], float, float, float]:
    """The trials in the order in which they were made, the rates that were allowed, and the precision that
    was asked for."""
    runs = runs.sort_values("run_id")
    asked = [json.loads(text) for text in runs["search"]]
    trials = [
        Trial(rate, Answer(answer), search["purpose"])
        for rate, answer, search in zip(runs["offered_rate_rps"], runs["answer"], asked, strict=True)
    ]
    rates = runs["offered_rate_rps"]
    lowest = min(search.get("lowest_rate_rps", rates.min()) for search in asked)
    highest = max(search.get("highest_rate_rps", rates.max()) for search in asked)
    return trials, lowest, highest, min(search.get("precision", 0.05) for search in asked)
