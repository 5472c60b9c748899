"""Which difference so many runs with this noise could have found.

    detectable(noise=0.04, before=6, after=6)              1.08: a change by 8 % is found in four of five such
                                                           experiments
    share_found(noise=0.04, before=6, after=6, by=1.05)    how often one of 5 % is

``noise``: standard deviation of the logarithm of a run's value within a configuration. ``freedom``: the
degrees of freedom that it was estimated with; infinite: it is known. Few runs often show less noise than
there is. So a difference that is found in four of five, over all estimates that the same noise could have
given, is larger than with a noise that is known. ``slack``: by how much the logarithm of a ratio may be wrong
since values are told in steps (``pairs.slack``): no smaller difference is ever found.

It is the power of the test that ``pairs`` makes: the mean over DRAWS spreads of both sides, of normal noise,
of the probability that their difference is beyond the limit of Welch's test and of Student's.
"""

import math
from bisect import bisect_left
from functools import lru_cache

import numpy as np
from scipy import special

from kvstudy.analyse.comparison import student_t
from kvstudy.analyse.comparison.words import ALPHA, MIN_RUNS

WANTED = 0.8  # found in four of five
DRAWS = 4000


def detectable(
    noise: float,
    before: int,
    after: int,
    alpha: float = ALPHA,
    slack: float = 0.0,
    freedom: float = math.inf,
) -> float:
    """The smallest ratio above 1 that is found with probability WANTED; infinite where the runs are too few
    for any word."""
    if min(before, after) < MIN_RUNS or math.isnan(noise):
        return math.inf
    effect = _effect(before, after, alpha, freedom)
    return math.exp(min(700.0, effect * noise + slack))


def share_found(
    noise: float,
    before: int,
    after: int,
    by: float,
    alpha: float = ALPHA,
    slack: float = 0.0,
    freedom: float = math.inf,
) -> float:
    """The probability of finding a true ratio ``by``; 0 where the runs are too few for any word."""
    distance = abs(math.log(by)) - slack
    if min(before, after) < MIN_RUNS or math.isnan(noise) or distance <= 0:
        return 0.0
    return _power(distance / noise, before, after, alpha, freedom) if noise else 1.0


def runs_needed(
    noise: float,
    by: float,
    alpha: float = ALPHA,
    most: int = 100,
    slack: float = 0.0,
    freedom: float = math.inf,
) -> int | None:
    """The fewest runs a side that find ``by`` with probability WANTED; None when ``most`` do not."""

    def enough(runs: int) -> bool:
        return share_found(noise, runs, runs, by, alpha, slack, freedom) >= WANTED

    if not enough(most):
        return None
    return bisect_left(range(most), True, lo=MIN_RUNS, key=enough)


@lru_cache(maxsize=300)
def _effect(before: int, after: int, alpha: float, freedom: float) -> float:
    """In standard deviations."""
    low, high = 1e-3, 1e4
    while high / low > 1.0001:
        middle = math.sqrt(low * high)
        if _power(middle, before, after, alpha, freedom) >= WANTED:
            high = middle
        else:
            low = middle
    return high


def _power(effect: float, before: int, after: int, alpha: float, freedom: float) -> float:
    """Of a difference of so many standard deviations."""
    noise = np.sqrt(_spread(freedom, 2)) if math.isfinite(freedom) else 1.0
    beyond = (effect * noise - _limits(before, after, alpha)) / math.sqrt(1 / before + 1 / after)
    return float(special.ndtr(beyond).mean())


@lru_cache(maxsize=300)
def _limits(before: int, after: int, alpha: float) -> np.ndarray:
    """By how many standard deviations two means must differ for p ≤ ``alpha``, of each draw."""
    variances = _spread(before - 1, 0), before, _spread(after - 1, 1), after
    both = student_t.welch(*variances), student_t.pooled(*variances)
    return np.maximum(*(student_t.isf(alpha / 2, freedom) * error for error, freedom in both))


@lru_cache(maxsize=300)
def _spread(freedom: float, which: int) -> np.ndarray:
    """Draws of the square of a standard deviation, over its true one: as evenly as DRAWS quantiles, and in an
    order of its own for each ``which``."""
    even = (np.random.default_rng(which).permutation(DRAWS) + 0.5) / DRAWS
    return 2 * special.gammaincinv(freedom / 2, even) / freedom
