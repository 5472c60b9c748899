"""Which difference so many runs with this noise could have found.

    detectable(noise=0.04, before=6, after=6)          1.07: a change by 7 % is found in four of five such
                                                       experiments
    share_found(noise=0.04, before=6, after=6, by=1.05)    how often one of 5 % is

``noise``: standard deviation of the logarithm of a run's value within a configuration. ``slack``: by how much
the logarithm of a ratio may be wrong since values are told in steps (``pairs.slack``): no smaller difference
is ever found. By the noncentral t distribution (statsmodels).
"""

import math
from functools import cache

from statsmodels.stats.power import tt_ind_solve_power

from kvstudy.analyse.comparison.words import ALPHA, MIN_RUNS

WANTED = 0.8  # found in four of five


def detectable(noise: float, before: int, after: int, alpha: float = ALPHA, slack: float = 0.0) -> float:
    """The smallest ratio above 1 that is found with probability WANTED; infinite where the runs are too few
    for any word."""
    if min(before, after) < MIN_RUNS or math.isnan(noise):
        return math.inf
    effect = _effect(before, after, alpha)
    return math.exp(min(700.0, effect * noise + slack))


def share_found(
    noise: float, before: int, after: int, by: float, alpha: float = ALPHA, slack: float = 0.0
) -> float:
    """The probability of finding a true ratio ``by``; 0 where the runs are too few for any word."""
    distance = abs(math.log(by)) - slack
    if min(before, after) < MIN_RUNS or math.isnan(noise) or distance <= 0:
        return 0.0
    return _power(distance / noise if noise else math.inf, before, after, alpha)


def runs_needed(
    noise: float, by: float, alpha: float = ALPHA, most: int = 100, slack: float = 0.0
) -> int | None:
    """The fewest runs a side that find ``by`` with probability WANTED; None when ``most`` do not."""
    return next(
        (
            runs
            for runs in range(MIN_RUNS, most + 1)
            if share_found(noise, runs, runs, by, alpha, slack) >= WANTED
        ),
        None,
    )


@cache
def _effect(before: int, after: int, alpha: float) -> float:
    """In standard deviations. By halving: the library's own root finding gives up where alpha is small."""
    low, high = 0.0, 40.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        if _power(middle, before, after, alpha) >= WANTED:
            high = middle
        else:
            low = middle
    return high


def _power(effect: float, before: int, after: int, alpha: float) -> float:
    """Where the effect is so large that the noncentral t distribution cannot be computed, it is found for
    certain."""
    power = (
        float(tt_ind_solve_power(effect_size=effect, nobs1=before, ratio=after / before, alpha=alpha))
        if effect < 40
        else 1.0
    )
    return 1.0 if math.isnan(power) else power
