"""How much load is too much: what searches found, which rates chosen beforehand were held, and whether
latency gave a warning.

    searches(trials)                      one Search for each line of runs and objective
    rates_chosen(tables)                  of the rates chosen beforehand, by combination; None without runs at
                                          a rate
    warnings_of_rates(tables, 99.0)       of each combination: did latency bend before its rate was lost?
    expectation(warnings)                 what all warnings together say

A combination is of workload, connections and options: ``configuration.combinations``. Which runs are
informative about a rate: ``rates``.
"""

import json
import math
from collections import Counter
from dataclasses import dataclass

import pandas as pd

from kvstudy.analyse import percentile_grid, rates
from kvstudy.analyse.comparison.intervals import CONFIDENCE
from kvstudy.analyse.comparison.outcomes import allowed
from kvstudy.analyse.comparison.pairs import pair
from kvstudy.analyse.comparison.words import CANNOT_TELL, MIN_RUNS, SAME, SLOWER
from kvstudy.analyse.configuration import COMBINATION, RESOLUTION_US, lost_runs
from kvstudy.analyse.rates import saturation_of
from kvstudy.analyse.tables import Tables
from kvstudy.analyse.validity import ACHIEVED_SHARE_MIN, FAIL
from kvstudy.plan.objective import Answer
from kvstudy.plan.search import Found

BEND = 2.0  # latency has bent where it is surely over so many times that at the lowest rate
# What a search, or a combination, says of the expectation that latency bends before the achieved rate does.
WARNED, LATE, NEITHER, ALONE, UNSURE = "warned", "late", "neither", "alone", "unsure"
UNKNOWN = "unknown"  # of runs that lack the percentile
HELD, HELD_IN_PART, NOT_HELD = "held", "held in part", "not held"


@dataclass(frozen=True)
class Search:
    """One search. ``goal``: its objective, as typed, times in seconds; ``trials``: its configured runs;
    ``knee``: what they say."""

    experiment: str
    workload: str
    goal: dict
    trials: pd.DataFrame
    knee: Found

    @property
    def decided_trials(self) -> int:
        return int((self.trials["answer"] != Answer.UNKNOWN.value).sum())

    @property
    def warning(self) -> str:
        """Whether the trials that missed near the knee had achieved their rate, without an error: then
        latency alone broke the objective."""
        if self.knee.missed_rps is None:
            return UNSURE if self.knee.held_rps is None else NEITHER
        trials = self.trials[self.trials["answer"] == Answer.MISSED.value]
        missed = trials[
            trials["offered_rate_rps"] <= max(self.knee.missed_rps, trials["offered_rate_rps"].min())
        ]
        achieved = missed["achieved_rate_rps"] >= ACHIEVED_SHARE_MIN * missed["offered_rate_rps"]
        if not achieved.any():
            return LATE
        without_errors = missed["errors_total"] + missed["unexpected_answers"] == 0
        return WARNED if (achieved & without_errors).all() else UNSURE


@dataclass(frozen=True)
class RatesChosen:
    """Of the rates that were chosen beforehand. ``runs``: those at a rate, with their COMBINATION;
    ``points``: ``rates.saturation_of`` of each combination, empty where no run is informative, and
    ``failed`` then has the checks that failed most often; ``uninformative`` of ``tried`` rates have no run
    that says whether they were held."""

    runs: pd.DataFrame
    points: pd.DataFrame
    failed: tuple[tuple[str, int], ...]
    uninformative: int
    tried: int

    @property
    def undecided(self) -> int:
        """Combinations with too few runs at a rate."""
        return len(self.points) - len(self._decided)

    @property
    def _decided(self) -> pd.DataFrame:
        return self.points[self.points["fewest"] >= MIN_RUNS]

    @property
    def lost(self) -> pd.DataFrame:
        """The decided points that met a rate which they did not hold, the lowest such rate first."""
        return self._decided.dropna(subset=["saturation_rps"]).sort_values("saturation_rps", kind="stable")

    @property
    def highest_held_rps(self) -> float:
        """Of the decided points."""
        return float(self._decided["highest_held_rps"].max())


def searches(trials: Tables) -> list[Search]:
    """What ``trials`` are of: a search for each line of runs and each objective."""
    return [
        Search(
            mine["experiment"].iloc[0],
            mine["workload"].iloc[0],
            json.loads(mine["search"].iloc[0]).get("objective", {}),
            mine,
            rates.knee_of(mine),
        )
        for mine in rates.each_search(trials.runs)
    ]


def rates_chosen(tables: Tables) -> RatesChosen | None:
    runs = _at_rates(tables)
    if runs.empty:
        return None
    failed = tables.validity[
        (tables.validity["verdict"] == FAIL) & tables.validity["run_id"].isin(runs["run_id"])
    ]["check"].value_counts()
    informative = runs.groupby([COMBINATION, "offered_rate_rps"])["is_informative"].any()
    return RatesChosen(
        runs,
        saturation_of(runs, [COMBINATION]),
        tuple((str(check), int(count)) for check, count in failed.head(3).items()),
        int((~informative).sum()),
        len(informative),
    )


def warnings_of_rates(tables: Tables, percentile: float) -> list[str]:
    """One of WARNED, LATE, NEITHER, ALONE, UNKNOWN and UNSURE for each combination of ``tables``."""
    percentile_grid.check(percentile)
    points = tables.percentiles
    points = points[
        (points["latency_kind"] == "response")
        & percentile_grid.at(points["percentile"], percentile)
        & points["latency_us"].notna()
    ]
    runs = _at_rates(tables).merge(points[["run_id", "latency_us"]], on="run_id", how="left")
    return [warning(mine) for _, mine in runs.groupby(COMBINATION)]


def warning(runs: pd.DataFrame) -> str:
    """Of the runs of one combination: did latency bend at a rate below the lowest one that was not held?"""
    if runs["offered_rate_rps"].nunique() == 1:
        return ALONE
    believed = runs.loc[runs["verdict"] != FAIL, "latency_us"]
    if len(believed) and believed.isna().all():
        return UNKNOWN
    points = saturation_of(runs, [COMBINATION])
    saturation = points["saturation_rps"].iloc[0] if len(points) else math.nan
    below = runs[~(runs["offered_rate_rps"] >= saturation)]
    valid = below[(below["verdict"] != FAIL) & (below["latency_us"] > 0)]
    groups = {rate: group["latency_us"] for rate, group in valid.groupby("offered_rate_rps")}
    excluded = {rate: group["excluded"] for rate, group in below.groupby("offered_rate_rps")}
    lowest, *others = groups or [math.nan]
    # One of several intervals lies aside by chance more often than one alone.
    sure = 1 - (1 - CONFIDENCE) / max(1, len(others))
    ratios = {
        rate: pair(groups[lowest], groups[rate], confidence=sure, resolution=RESOLUTION_US)
        for rate in others
        if min(len(groups[lowest]), len(groups[rate])) >= MIN_RUNS
    }

    def may_be(word: str, rate: float) -> bool:
        """Of the survivors alone neither a bend above nor its absence is shown."""
        return allowed(word, *lost_runs(excluded[lowest], excluded[rate]).values()) == word

    if any(ratio.low > BEND and may_be(SLOWER, rate) for rate, ratio in ratios.items()):
        return WARNED
    unbent = [rate for rate, ratio in ratios.items() if ratio.high < BEND and may_be(SAME, rate)]
    if not unbent or len(unbent) < below["offered_rate_rps"].nunique() - 1:
        return UNSURE
    if math.isnan(saturation):
        return NEITHER
    return LATE if points["fewest"].iloc[0] >= MIN_RUNS else UNSURE


def expectation(warnings: Counter) -> str:
    """HELD, HELD_IN_PART or NOT_HELD: does latency bend before the achieved rate does? CANNOT_TELL where
    nothing met a rate that is too much."""
    if not warnings[WARNED] + warnings[LATE]:
        return CANNOT_TELL
    if not warnings[LATE]:
        return HELD
    return HELD_IN_PART if warnings[WARNED] else NOT_HELD


def _at_rates(tables: Tables) -> pd.DataFrame:
    """Latency runs at rates chosen beforehand, with COMBINATION and ``is_informative``."""
    runs = tables.runs[~tables.runs["profiled"] & ~tables.runs["closed_loop"] & (tables.runs["search"] == "")]
    return rates.with_rate_outcome(tables, runs)
