"""Looking after every launch and stopping as soon as something is seen, without a false word more for it.

    p = sequential_p([4, 5, 6], [0.2, 0.04, 0.001])      one p of a two-sided test, however often it was
                                                         looked at
    nominal_p(0.05, 6)                                   below which p a look after six launches decides at 5
                                                         %

A group-sequential test spends its error by looks. Here it is spent by the number of launches alone
(``spent``), whatever was planned: so neither a shorter time, nor Ctrl-C, nor going on later changes what a
look may spend. By HORIZON launches most of it is spent, the rest after. The limits of the looks are found by
recursion (Armitage, McPherson and Rowe 1969; Lan and DeMets 1983) for sums of normal numbers, and used on the
p of a t test. A sequential p is the smallest error at which some look until now would have decided (Liu and
Anderson 2008); so what corrects many p for one another (Holm) may follow it.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy import special

# Launches. Where half of them are of one kind and half of another, the first five are all of one kind in one
# duet of 16, which is more than 5 %; the first six are in one of 32.
FIRST_LOOK = 6
HORIZON = 15  # launches: a little more than ten minutes have of one workload
LAST_LOOK = 60
SPENT_AT_HORIZON, SPENT_IN_ALL = (
    0.66,
    0.79,
)  # the rest is kept, since p of a t test go together a little less than the sums that limits are made for
_STEP = 0.05  # of the grid of sums, in standard deviations of a launch
_REACH = 6.0
_ERRORS = np.geomspace(
    1e-6, 0.5, 25
)  # between which nominal p are interpolated, and so far sequential ones are told


def spent(launches: int) -> float:
    """The share of the error that looks up to this one may spend together."""
    if launches < FIRST_LOOK:
        return 0.0
    # The cube was simulated against the square, and against one that ends at the horizon: it finds as much by
    # then, earlier, and goes on smoothly.
    return SPENT_IN_ALL * launches**3 / (launches**3 + HORIZON**3 * (SPENT_IN_ALL / SPENT_AT_HORIZON - 1))


def nominal_p(error: float, launches: int) -> float:
    """The two-sided p at which a look after so many launches decides, where all looks together may err with
    ``error``."""
    if not FIRST_LOOK <= launches <= LAST_LOOK:
        return 0.0
    return float(
        np.exp(np.interp(np.log(error), np.log(_ERRORS), np.log(_nominal_ps()[:, launches - FIRST_LOOK])))
    )


def sequential_p(launches: Sequence[int], ps: Sequence[float]) -> float:
    """Of the p of looks after so many launches each; 1 without a look. Looks that were left out cost
    nothing."""
    return float(sequential_ps(np.asarray(launches), np.atleast_2d(np.asarray(ps, dtype=float)))[0])


def sequential_ps(launches: np.ndarray, ps: np.ndarray) -> np.ndarray:
    """The same of many tests at once: one row per test, one column per look."""
    found = np.ones(len(ps))
    for column, count in enumerate(launches):
        if FIRST_LOOK <= count <= LAST_LOOK:
            limits = np.log(_nominal_ps()[:, count - FIRST_LOOK])
            known = np.nan_to_num(ps[:, column], nan=1.0)
            errors = np.exp(np.interp(np.log(np.maximum(known, 1e-300)), limits, np.log(_ERRORS), right=0.0))
            found = np.minimum(found, errors)
    return found


def sequential_one_sided(launches: np.ndarray, ps: np.ndarray) -> np.ndarray:
    """Of the p of one-sided tests, as ``sequential_ps``: their limits are those of the two-sided test with
    twice the error, on one side."""
    found = sequential_ps(launches, np.minimum(1.0, 2 * ps))
    return np.where(found < 1, found / 2, 1.0)


@lru_cache(maxsize=1)
def _nominal_ps() -> np.ndarray:
    """One row per error of _ERRORS, one column per look from FIRST_LOOK to LAST_LOOK."""
    return np.array([_limits(error) for error in _ERRORS])


def _limits(error: float) -> list[float]:
    half = int(_REACH * np.sqrt(LAST_LOOK) / _STEP)
    sums = np.arange(-half, half + 1) * _STEP
    kernel = _normal(np.arange(-int(_REACH / _STEP), int(_REACH / _STEP) + 1) * _STEP) * _STEP
    # The chance of each sum that no look has decided yet, begun with the launches before the first look.
    density = _normal(sums / np.sqrt(FIRST_LOOK)) / np.sqrt(FIRST_LOOK) * _STEP
    found, before = [], 0.0
    for launches in range(FIRST_LOOK, LAST_LOOK + 1):
        now = spent(launches) * error
        limit = _limit(sums, density, (now - before) / 2)
        found.append(float(2 * special.ndtr(-limit / np.sqrt(launches))))
        before = now
        inside = np.clip((limit - np.abs(sums)) / _STEP + 0.5, 0, 1)
        density = np.convolve(density * inside, kernel, mode="same")
    return found


def _normal(values: np.ndarray) -> np.ndarray:
    """The density of the normal distribution."""
    return np.exp(-(values**2) / 2) / np.sqrt(2 * np.pi)


def _limit(sums: np.ndarray, density: np.ndarray, tail: float) -> float:
    """Beyond which sum so much of the density lies on either side: the density is that of cells of width
    _STEP around the sums."""
    middle = len(sums) // 2
    beyond = np.cumsum(density[:middle:-1])[::-1]  # of the cells from each positive sum up
    edges = sums[middle + 1 :] - _STEP / 2
    return float(np.interp(-np.log(max(tail, 1e-300)), -np.log(np.maximum(beyond, 1e-300)), edges))
