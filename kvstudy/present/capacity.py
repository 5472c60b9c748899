"""How much load is too much, in sentences: where searches found the knee, which rates chosen beforehand were
held, and whether latency gave a warning.

    capacity.found(tables, trials)                       the answer, and a line for each search
    capacity.expectation(tables, trials, percentile)     does latency bend before the achieved rate does?

``tables``: runs of any experiment; ``trials``: those of searches for a stable rate. Which runs speak about a
rate says analyse.rates.
"""

import json
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd
from IPython.display import Markdown

from kvstudy.analyse import rates
from kvstudy.analyse.comparison.intervals import CONFIDENCE
from kvstudy.analyse.comparison.outcomes import allowed
from kvstudy.analyse.comparison.pairs import pair
from kvstudy.analyse.comparison.words import CANNOT_TELL, MIN_RUNS, SAME, SLOWER, TOO_FEW
from kvstudy.analyse.configuration import RESOLUTION_US, configured
from kvstudy.analyse.rates import saturation_points
from kvstudy.analyse.tables import Tables
from kvstudy.analyse.validity import ACHIEVED_SHARE_MIN, OUTSIDE, SERVICE
from kvstudy.plan.objective import Answer
from kvstudy.plan.search import Found
from kvstudy.present import series, words

BEND = 2.0  # latency has bent where it is surely over so many times that at the lowest rate
WARNED, LATE, NEITHER, ALONE, UNSURE = (
    "warned",
    "late",
    "neither",
    "alone",
    "unsure",
)  # what a line says of the expectation
_COMBINATIONS = "of workload, connections and options"


@dataclass(frozen=True)
class Searched:
    """One search. ``name``: what tells it from the others; ``objective``: in words; ``trials``: its runs;
    ``knee``: what they say."""

    name: str
    objective: str
    trials: pd.DataFrame
    knee: Found

    def told(self) -> str:
        held, missed = self.knee.held_rps, self.knee.missed_rps
        basis = (
            f"{self.objective}; {words.counted((self.trials['answer'] != Answer.UNKNOWN.value).sum(), 'run')}"
        )
        if held is not None and missed is not None:
            return (
                f"{words.about_rate(held)} is held more often than not, {words.about_rate(missed)} is "
                f"missed more often than not ({basis})"
            )
        if held is not None:
            return (
                f"{words.about_rate(held)} is held more often than not ({basis}); no rate that it tried is "
                "surely too much"
            )
        if missed is not None:
            return (
                f"{words.about_rate(missed)} is missed more often than not ({basis}); no rate that it "
                "tried is surely held"
            )
        return (
            f"cannot tell: {words.counted(len(self.trials), 'trial')} are too few to say of any rate that "
            "it is held or missed"
        )

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
        return (
            WARNED
            if (achieved & (missed["errors_total"] + missed["unexpected_answers"] == 0)).all()
            else UNSURE
        )


def searches(trials: Tables) -> list[Searched]:
    """What ``trials`` are of: a search for each line of runs and each objective."""
    parts = rates.each_search(trials.runs)
    if not parts:
        return []
    told = series.names(pd.concat(parts), said=("experiment", "workload"))
    named = [
        (
            f"{mine['experiment'].iloc[0]}, {mine['workload'].iloc[0]}, {told[mine.index[0]]}",
            json.loads(mine["search"].iloc[0]).get("objective", {}),
            mine,
        )
        for mine in parts
    ]
    return [
        _searched(*one) for one in sorted(named, key=lambda one: (one[0], json.dumps(one[1], sort_keys=True)))
    ]


def found(tables: Tables, trials: Tables) -> Markdown:
    """The answer: what the searches and the rates chosen beforehand say, then a line for each search."""
    searched = searches(trials)
    parts = [part for part in (_of_searches(searched), _of_rates(tables)) if part]
    if not parts:
        return Markdown(
            "**Found:** cannot tell: there is no search for a stable rate and no run at an offered rate."
        )
    lines = [f"- {one.name}: {one.told()}." for one in searched]
    return Markdown("\n".join([f"**Found:** {'; '.join(parts)}.", *([""] if lines else []), *lines]))


def expectation(tables: Tables, trials: Tables, percentile: float = 99.0) -> Markdown:
    """Whether latency bent at rates that were still achieved, counted over searches and over the combinations
    of ``tables``."""
    of_searches, of_rates = (
        Counter(search.warning() for search in searches(trials)),
        Counter(_warnings(tables, percentile)),
    )
    both = of_searches + of_rates
    if not both[WARNED] + both[LATE]:
        verdict = CANNOT_TELL
    elif not both[LATE]:
        verdict = "it held, as far as it was tested"
    else:
        verdict = "it held in part" if both[WARNED] else "it did not hold"
    told = {
        WARNED: "missed a rate that was achieved: latency broke the objective first",
        LATE: "missed a rate that was not achieved either",
        NEITHER: "met no rate that was too much",
        UNSURE: "decided nothing",
    }
    sentences = [_counts(of_searches, told, "search", "searches")]
    over = f"over {BEND:g} times that at the lowest rate"
    told = {
        WARNED: f"had {words.percentile(percentile)} {over} at a rate that was held",
        LATE: f"met a rate that was not held, with no {words.percentile(percentile)} {over} before it",
        NEITHER: f"held every rate, with no {words.percentile(percentile)} {over}",
        ALONE: "met one rate only",
        UNSURE: "had too few valid runs, or runs that differed too much, to tell",
    }
    sentences.append(_counts(of_rates, told, "combination", "combinations", f" {_COMBINATIONS}"))
    return Markdown(" ".join([f"**Against the Expectation:** {verdict}.", *filter(None, sentences)]))


def _counts(counted: Counter, told: dict[str, str], one: str, several: str, of_what: str = "") -> str:
    if counted.total() == 1:
        return f"The only {one}{of_what} {told[next(iter(counted))]}."
    parts = [f"{counted[kind]} {text}" for kind, text in told.items() if counted[kind]]
    if len(parts) == 1:
        return f"All {parts[0].replace(' ', f' {several}{of_what} ', 1)}."
    return f"Of {counted.total()} {several}{of_what} {'; '.join(parts)}." if parts else ""


def _searched(name: str, goal: dict, runs: pd.DataFrame) -> Searched:
    return Searched(name, _objective(goal), runs, rates.knee_of(runs))


def _objective(goal: dict) -> str:
    """``{"mean": 0.001}`` → "a mean of at most 1 ms"."""
    limits = [
        f"{'a mean' if name == 'mean' else name.replace('p999', 'p99.9')} of at most {goal[name] * 1e3:g} ms"
        for name in ("mean", "p50", "p99", "p999")
        if goal.get(name)
    ]
    return words.several(limits) if limits else "its objective"


def _of_searches(searched: list[Searched]) -> str:
    if not searched:
        return ""
    if len(searched) == 1:
        return "one search for the highest rate that keeps an objective answers below"
    ends = Counter((one.knee.held_rps is not None, one.knee.missed_rps is not None) for one in searched)
    told = {
        (True, True): "found the knee between two rates",
        (True, False): "met no rate that is surely too much",
        (False, True): "found every rate too much",
        (False, False): "decided nothing",
    }
    parts = [f"{ends[kind]} {text}" for kind, text in told.items() if ends[kind]]
    return f"of {len(searched)} searches for the highest rate that keeps an objective {', '.join(parts)}"


def _at_rates(tables: Tables) -> pd.DataFrame:
    """Latency runs at rates chosen beforehand, with ``line`` (equal for runs that differ in the rate alone)
    and ``speaks`` (about its rate)."""
    runs = tables.runs[~tables.runs["profiled"] & ~tables.runs["closed_loop"] & (tables.runs["search"] == "")]
    runs, known = configured(runs), rates.witnesses(tables).set_index("run_id")["achieved_rate_rps"]
    return runs.assign(
        line=series.names(runs),
        speaks=runs["run_id"].isin(known.index),
        achieved_rate_rps=runs["run_id"].map(known),
    )


def _of_rates(tables: Tables) -> str:
    runs = _at_rates(tables)
    if runs.empty:
        return ""
    experiments = sorted(runs["experiment"].unique())
    few = len(experiments) < 4
    chosen = (
        words.several([f"`{name}`" for name in experiments]) if few else f"{len(experiments)} experiments"
    )
    whose = f"of the rates chosen beforehand in {chosen}"
    points = saturation_points(runs[runs["speaks"]], ["line"])
    if points.empty:
        failed = tables.validity[
            (tables.validity["verdict"] == "FAIL") & tables.validity["run_id"].isin(runs["run_id"])
        ]["check"].value_counts()
        why = words.several([f"{check} ({count})" for check, count in failed.head(3).items()])
        return f"{whose} nothing can be told: no run speaks about its rate; checks failed: {why}"
    few = int((points["fewest"] < MIN_RUNS).sum())
    unsure = (
        f"; {TOO_FEW.replace(' a side', ' at a rate')}, too few to be sure, are in {few} of {len(points)}"
        if few
        else ""
    )
    silent = runs.groupby(["line", "offered_rate_rps"])["speaks"].any()
    unjudged = (
        f" ({(~silent).sum()} of {len(silent)} cannot be judged: no run of them speaks about its rate)"
        if not silent.all()
        else ""
    )
    total, lost = len(points), points.dropna(subset=["saturation_rps"])
    if lost.empty:
        who = (
            f"the only combination {_COMBINATIONS}"
            if total == 1
            else f"each of {total} combinations {_COMBINATIONS}"
        )
        return (
            f"{whose}, at most {words.rate(points['highest_held_rps'].max())}, none was too "
            f"much{unjudged}: {who} held what it was offered, and what saturates it lies above{unsure}"
        )
    first, highest = lost.loc[lost["saturation_rps"].idxmin()], points["highest_held_rps"].max()
    best = "none was held" if math.isnan(highest) else f"the highest that was held is {words.rate(highest)}"
    return (
        f"{whose} {best}{unjudged}; {len(lost)} of {words.counted(total, 'combination')} {_COMBINATIONS} "
        f"met one that is too much, the lowest {words.rate(first['saturation_rps'])} by "
        f"{first['line']}{unsure}"
    )


def _warnings(tables: Tables, percentile: float) -> list[str]:
    """One word for each combination of ``tables``."""
    points = tables.percentiles
    points = points[
        (points["latency_kind"] == "response")
        & np.isclose(points["percentile"], percentile)
        & points["latency_us"].notna()
    ]
    runs = _at_rates(tables).merge(points[["run_id", "latency_us"]], on="run_id", how="left")
    return [_warning(mine) for _, mine in runs.groupby("line")]


def _warning(runs: pd.DataFrame) -> str:
    """Of the runs of one combination: did latency bend at a rate below the lowest one that was not held?"""
    if runs["offered_rate_rps"].nunique() == 1:
        return ALONE
    points = saturation_points(runs[runs["speaks"]], ["line"])
    saturation = points["saturation_rps"].iloc[0] if len(points) else math.nan
    below = runs[~(runs["offered_rate_rps"] >= saturation)]
    valid = below[(below["verdict"] != "FAIL") & (below["latency_us"] > 0)]
    groups = {rate: group["latency_us"] for rate, group in valid.groupby("offered_rate_rps")}
    counted = below[below["excluded"] != OUTSIDE]
    lost = {
        rate: (int((group["excluded"] == SERVICE).sum()), len(group))
        for rate, group in counted.groupby("offered_rate_rps")
    }
    lowest, *others = groups or [math.nan]
    # One of several intervals lies aside by chance more often than one alone.
    sure = 1 - (1 - CONFIDENCE) / max(1, len(others))
    ratios = {
        rate: pair(groups[lowest], groups[rate], confidence=sure, resolution=RESOLUTION_US)
        for rate in others
        if min(len(groups[lowest]), len(groups[rate])) >= MIN_RUNS
    }
    # Of the survivors alone neither a bend above nor its absence is shown: ``allowed``.
    if any(
        ratio.low > BEND and allowed(SLOWER, *lost[lowest], *lost[rate]) == SLOWER
        for rate, ratio in ratios.items()
    ):
        return WARNED
    told = [
        rate
        for rate, ratio in ratios.items()
        if ratio.high < BEND and allowed(SAME, *lost[lowest], *lost[rate]) == SAME
    ]
    if not told or len(told) < below["offered_rate_rps"].nunique() - 1:
        return UNSURE
    return NEITHER if math.isnan(saturation) else LATE
