"""How far the word of a comparison can be trusted at the noise that was measured: false positives and power, by simulation.

    certainty(tables)                                           all of it for these runs, one row per measure
    noise = relative_noise(runs, "p99_us", by=["variant"])      what repeats of the same thing differ by
    false_positive_rate(noise, repeats=5)                       how often A against A is called faster or slower
    power(noise, repeats=5, ratio=1.05)                         how often a true 5 % is found, with the right word

Both draw runs from the measured noise, with replacement, so its own shape (skew, outliers) counts; nothing is assumed normal.
Correlation between neighbouring runs is not in it: the interleaved order of the plan is there to break it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from kvstudy.analyse import statistics
from kvstudy.analyse.configuration import CPU, configured
from kvstudy.analyse.tables import Tables

TRIALS = 1000
_BATCH = 200  # experiments simulated at once: 200 × 10 000 resamples are 16 MB


@dataclass(frozen=True)
class Rate:
    """A share of simulated experiments with the standard error of the simulation."""

    share: float
    standard_error: float
    trials: int


def certainty(tables: Tables, percentiles: Sequence[float] = (50.0, 99.0, 99.9), repeats: int = statistics.MIN_RUNS, ratio: float = 1.05,
              trials: int = TRIALS) -> pd.DataFrame:
    """What a comparison of ``repeats`` runs a side can tell at the noise of these runs: one row per percentile of response time, and one for the CPU per request.

    Columns: measure, runs and configurations the noise is from, spread_percent (half the width of the middle 90 % of the repeats around
    their median), false_positive_share, power_share (of finding ``ratio``), repeats_needed (for 80 % power; NA when over 30). Only
    believed runs count, and configurations with at least two of them; without any there is no row.
    """
    believed = tables.believed()
    runs = configured(believed.runs)
    points = believed.percentiles[(believed.percentiles["latency_kind"] == "response") & (believed.percentiles["latency_us"] > 0)]
    values = {f"p{percentile:g}": points.loc[points["percentile"] == percentile, ["run_id", "latency_us"]] for percentile in percentiles}
    values[CPU] = runs[["run_id", "service_cpu_us_per_answer"]].dropna()
    rows = []
    for measure, value in values.items():
        measured = runs[["run_id", "configuration"]].merge(value.set_axis(["run_id", "value"], axis=1), on="run_id")
        sizes = measured.groupby("configuration").size()
        if not (sizes >= 2).any():
            continue
        noise = relative_noise(measured, "value", by=["configuration"])
        low, high = np.quantile(noise, [0.05, 0.95])
        rows.append({"measure": measure, "runs": len(noise), "configurations": int((sizes >= 2).sum()), "spread_percent": 50 * (high - low),
                     "false_positive_share": false_positive_rate(noise, repeats, trials).share, "power_share": power(noise, repeats, ratio, trials).share,
                     "repeats_needed": repeats_needed(noise, ratio)})
    columns = ["measure", "runs", "configurations", "spread_percent", "false_positive_share", "power_share", "repeats_needed"]
    return pd.DataFrame(rows, columns=columns).astype({"repeats_needed": "Int64"})


def relative_noise(runs: pd.DataFrame, value: str, by: Sequence[str]) -> np.ndarray:
    """Each run's ``value`` over the median of its group, for groups of at least two runs; one number per run, 1.0 = the median.

    Residuals of n runs are too small by √((n-1)/n), so each group's are stretched by the inverse.
    """
    parts = []
    for _, group in runs.dropna(subset=[value]).groupby(list(by), sort=True):
        if len(group) >= 2:
            residuals = np.log(group[value].to_numpy(dtype=float) / group[value].median())
            parts.append(residuals * np.sqrt(len(group) / (len(group) - 1)))
    if not parts:
        raise ValueError(f"no group with two runs: value={value}, by={','.join(by)}")
    return np.exp(np.concatenate(parts))


def false_positive_rate(noise: np.ndarray, repeats: int, trials: int = TRIALS, seed: int = 1) -> Rate:
    """Share of experiments of the same thing against itself that are called faster or slower."""
    found = _words(noise, repeats, 1.0, trials, seed)
    return _rate(found != statistics.CANNOT_TELL)


def power(noise: np.ndarray, repeats: int, ratio: float = 1.05, trials: int = TRIALS, seed: int = 1) -> Rate:
    """Share of experiments in which a true change by ``ratio`` (latency after / before) is found with the right word."""
    right = statistics.SLOWER if ratio > 1 else statistics.FASTER
    return _rate(_words(noise, repeats, ratio, trials, seed) == right)


def repeats_needed(noise: np.ndarray, ratio: float = 1.05, wanted: float = 0.8, most: int = 30, trials: int = 400, seed: int = 1) -> int | None:
    """The fewest repeats a side that find a true change by ``ratio`` with probability ``wanted``; None when ``most`` do not."""
    low, high = statistics.MIN_RUNS - 1, most  # power grows with repeats: too few at low, enough at high
    if power(noise, most, ratio, trials, seed).share < wanted:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(noise, middle, ratio, trials, seed).share >= wanted else (middle, high)
    return high


def _words(noise: np.ndarray, repeats: int, ratio: float, trials: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    found = []
    for begin in range(0, trials, _BATCH):
        size = (min(_BATCH, trials - begin), repeats)
        before, after = generator.choice(noise, size), generator.choice(noise, size) * ratio
        found.append(statistics.words(before, after))
    return np.concatenate(found)


def _rate(hits: np.ndarray) -> Rate:
    share = float(hits.mean())
    return Rate(share, float(np.sqrt(share * (1 - share) / len(hits))), len(hits))
