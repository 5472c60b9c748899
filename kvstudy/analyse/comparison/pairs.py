"""Two sides of runs, one positive number per run: what they show of a difference, before anybody says a word.

    pair(before, after)          ratio of medians with its interval, p of a difference, p of being the same

p is a t test on logarithms. It was chosen over ranks, which cannot reach the small p that a family of
24 comparisons asks of six runs a side (2 of 924 orders are complete separation), and over a bootstrap of
medians, which hangs on the extreme runs and finds less. With heavy tails it says fewer false words, not more:
`make soundness`. Of Welch's test and Student's the larger p counts. With as many runs on both sides that is
Welch's. With five on one side and twenty on the other, Welch's alone says a false word on 11 % of pages of
normal runs (test_comparison_words.py): it rests on the spread of the few.

The interval is that of the test, so it excludes 1 where p is at most 5 %. It is wide enough for the ratio of
medians, which is what pages show: one extreme run moves it less than a mean.

A value is known to its ``resolution`` alone: a percentile of 17 us may be 16.5 or 17.5. Half of it on each
side moves the interval's ends out, the difference that is tested nearer to none, and the margin of being the
same in. So values one step apart are never called different.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kvstudy.analyse.comparison import student_t
from kvstudy.analyse.comparison.intervals import CONFIDENCE
from kvstudy.analyse.comparison.sameness import same_p
from kvstudy.analyse.comparison.words import MIN_RUNS, SAME_WITHIN


@dataclass(frozen=True)
class Pair:
    """``ratio``: median after / median before, with its interval; NaN of fewer than MIN_RUNS runs a side,
    which show no spread. ``p``: of no difference, ``p_same``: of a
    difference of ``same_within`` or more, neither corrected. ``noise``: standard deviation of a run's
    logarithm, pooled over both sides; NaN with one run a side. ``slack``: by how much the ratio's logarithm
    may be wrong since values are told in steps."""

    ratio: float
    low: float
    high: float
    p: float
    p_same: float
    same_within: float
    noise: float
    runs_before: int
    runs_after: int
    slack: float = 0.0


def pair(
    before: Sequence[float],
    after: Sequence[float],
    same_within: float = SAME_WITHIN,
    confidence: float = CONFIDENCE,
    resolution: float = 0.0,
) -> Pair:
    """``resolution``: the step in which values are told; 0: they are exact. ValueError for an empty side, or
    a value that is not positive and finite."""
    first, second = _values(before), _values(after)
    few = min(len(first), len(second)) < MIN_RUNS
    logs = np.log(first)[None, :], np.log(second)[None, :]
    low, high = (math.nan, math.nan) if few else _interval(*logs, confidence)
    ratio = float(np.median(second) / np.median(first))
    steps = slack(float(np.median(first)), float(np.median(second)), resolution)
    # Nor is it the same where the ratio itself is as much: medians of two groups part further than means.
    parted = abs(math.log(ratio)) >= math.log1p(same_within) - steps
    return Pair(
        ratio,
        low if few else min(ratio, low) * math.exp(-steps),
        high if few else max(ratio, high) * math.exp(steps),
        _p_beyond(*logs, steps),
        1.0 if parted else float(same_p(*logs, same_within, steps)[0]),
        same_within,
        pooled_noise(*logs),
        len(first),
        len(second),
        steps,
    )


def slack(before: float, after: float, resolution: float) -> float:
    """By how much the logarithm of a ratio may be wrong since both sides are told in steps; infinite where
    half a step is all of a side."""
    half = resolution / 2
    return -math.log1p(-half / before) - math.log1p(-half / after) if half < min(before, after) else math.inf


def _p_beyond(before: np.ndarray, after: np.ndarray, slack: float) -> float:
    """p of no difference beyond ``slack``."""
    distance = float(after.mean() - before.mean())
    if slack and abs(distance) <= slack:
        return 1.0
    return float(difference_p(before, after - math.copysign(slack, distance))[0])


def difference_p(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """p of logarithms, one row per pair; 1 where a side has one run. Runs without any spread differ for
    certain, or are the same."""
    if min(before.shape[1], after.shape[1]) < 2:
        return np.ones(len(before))
    distance = np.abs(after.mean(axis=1) - before.mean(axis=1))
    with np.errstate(all="ignore"):  # of runs that differ in the last bit
        ps = [2 * student_t.sf(distance / one.error, one.freedom) for one in student_t.errors(before, after)]
    return np.where(
        _constant(before, after), np.where(before[:, 0] == after[:, 0], 1.0, 0.0), np.max(ps, axis=0)
    )


def _interval(before: np.ndarray, after: np.ndarray, confidence: float) -> tuple[float, float]:
    """Of the ratio of a pair: the values that ``difference_p`` does not exclude."""
    if _constant(before, after)[0]:
        ratio = math.exp(after[0, 0] - before[0, 0])
        return ratio, ratio
    distance = float(after.mean() - before.mean())
    with np.errstate(all="ignore"):
        widths = [
            student_t.isf((1 - confidence) / 2, freedom) * error
            for error, freedom in student_t.errors(before, after)
        ]
    width = float(np.max(widths))
    return math.exp(distance - width), math.exp(min(700.0, distance + width))


def _constant(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    return (np.ptp(before, axis=1) == 0) & (np.ptp(after, axis=1) == 0)


def pooled_noise(before: np.ndarray, after: np.ndarray) -> float:
    freedom = before.shape[1] + after.shape[1] - 2
    if freedom < 1:
        return float("nan")
    squares = sum(((side - side.mean()) ** 2).sum() for side in (before[0], after[0]))
    return float(np.sqrt(squares / freedom))


def _values(values: Sequence[float]) -> np.ndarray:
    runs = np.sort(np.asarray(values, dtype=float))
    if not len(runs) or not (np.isfinite(runs).all() and (runs > 0).all()):
        raise ValueError(f"one positive, finite number per run is needed: runs={len(runs)}")
    return runs
