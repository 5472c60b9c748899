"""A number over runs with its interval: the unit is the run, not the request.

    median_interval(values)      median over runs with its interval; of a ratio: ``pairs``

The bootstrap resamples runs and cuts percentiles. A plain cut of few runs is a little too narrow (resampling
n runs understates their variance by (n-1)/n), so the cuts are moved out by that factor: Davison and Hinkley,
"Bootstrap Methods and their Application" (1997), section 2.3; Hesterberg, The American Statistician 69
(2015), section 4. Where a cut falls between two runs it may still be too narrow (of seven runs it holds the
median in 87 of 100 cases), so the interval reaches at least as far as that of interpolated order statistics:
Hettmansperger and Sheather, Statistics & Probability Letters 4 (1986).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

CONFIDENCE = 0.95
RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """``low`` ≤ ``estimate`` ≤ ``high``; ``runs``: how many runs it rests on (0: not from runs)."""

    estimate: float
    low: float
    high: float
    runs: int


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Median over runs; the interval is NaN with a single run: one run has no spread."""
    runs = np.sort(np.asarray(values, dtype=float))
    if not len(runs) or not np.isfinite(runs).all():
        raise ValueError(f"one finite number per run is needed: runs={len(runs)}")
    if len(runs) == 1:
        return Interval(float(runs[0]), math.nan, math.nan, 1)
    medians = _resampled_medians(runs[None, :], _generator())[0]
    low, high = np.quantile(medians, _tails(len(runs), confidence))
    least, most = _between_orders(runs, confidence)
    return Interval(float(np.median(runs)), min(float(low), least), max(float(high), most), len(runs))


def _between_orders(ordered: np.ndarray, confidence: float) -> tuple[float, float]:
    """The first and last run where these are not as sure; else between the two runs whose intervals are more
    and less so."""
    count = len(ordered)

    def covered(place: int) -> float:
        """How often the runs at this place from both ends hold the median between them."""
        return 1 - 2 * float(special.bdtr(place - 1, count, 0.5))

    place = next((one for one in range(count // 2, 0, -1) if covered(one) >= confidence), 0)
    if place == 0:
        return float(ordered[0]), float(ordered[-1])
    part = (covered(place) - confidence) / (covered(place) - covered(place + 1))
    inwards = (count - place) * part / (place + (count - 2 * place) * part)
    low = (1 - inwards) * ordered[place - 1] + inwards * ordered[place]
    high = (1 - inwards) * ordered[count - place] + inwards * ordered[count - place - 1]
    return float(low), float(high)


def _resampled_medians(runs: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """(experiments, runs) → (experiments, RESAMPLES). The same draws serve every experiment: they are
    independent of its values.

    Ranks are drawn instead of values: the median of drawn values is the value at the median rank, so ranks
    are sorted once for all.
    """
    count = runs.shape[1]
    ranks = np.sort(generator.integers(0, count, size=(RESAMPLES, count)), axis=1)
    ordered = np.sort(runs, axis=1)
    return (ordered[:, ranks[:, (count - 1) // 2]] + ordered[:, ranks[:, count // 2]]) / 2


def _tails(runs: int, confidence: float) -> tuple[float, float]:
    """Where to cut the bootstrap's distribution so that few runs do not look surer than they are."""
    if runs < 2:
        return 0.0, 1.0
    wide = math.sqrt(runs / (runs - 1)) * special.ndtri((1 + confidence) / 2)
    tail = float(special.ndtr(-wide))
    return tail, 1 - tail


def _generator() -> np.random.Generator:
    """Always the same stream: an interval is a function of the values alone."""
    return np.random.default_rng(20)
