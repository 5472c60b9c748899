"""The Universal Scalability Law (Gunther): throughput of N connections, with contention σ and the cost of
coherence κ.

    X(N) = λ N / (1 + σ (N - 1) + κ N (N - 1))

    usl = fit(connections, rates_rps)      one entry per run of one configuration, at least LEVELS_MIN
                                           different N; None where the rates fall faster than any law
    usl.rate_rps(8), usl.sigma, usl.peak

Three parameters go through any three points, so a fit needs more levels than that to be one. Intervals
resample runs within each N (a case bootstrap), their distances widened for how few runs there are; where a
level has one run there is no spread to resample, and the intervals are NaN. Simulated with 3 % of noise they
hold the truth in 85 to 96 of 100 cases with two runs at each of four numbers, in 87 to 97 with five at each
of six; that of λ least often. Nothing is said past the data: ``rate_rps`` refuses an N outside the measured
ones, and a peak is given only where its whole interval lies within them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from kvstudy.analyse.comparison import student_t
from kvstudy.analyse.comparison.intervals import CONFIDENCE, Interval

LEVELS_MIN = 4
RESAMPLES = 400
# Of λ each connection, so much at the fewest of them. A law with less has only the cost of coherence left,
# and any λ, σ and κ in proportion to it give the same rates.
EFFICIENCY_MIN = 1e-6


@dataclass(frozen=True)
class Usl:
    """``lambda_rps``: rate of one connection; ``sigma`` 0 – 1; ``kappa`` ≥ 0, fitted to levels from
    ``smallest`` to ``largest``. ``draws``: (resamples, 3), the parameters of each resample, none without
    repeats. ``runs``: how many runs. ``misfit``: how far the median of a level lies from the law at most, as
    a share of it."""

    lambda_rps: Interval
    sigma: Interval
    kappa: Interval
    smallest: float
    largest: float
    runs: int
    draws: np.ndarray
    misfit: float

    def rate_rps(self, connections: float) -> Interval:
        """The fitted rate with its interval; ValueError outside the measured numbers of connections."""
        if not self.smallest <= connections <= self.largest:
            raise ValueError(
                f"no extrapolation: connections={connections}, measured={self.smallest:g} … {self.largest:g}"
            )
        draws = _law(np.asarray(connections, dtype=float), *self.draws.T)
        estimate = _law(connections, self.lambda_rps.estimate, self.sigma.estimate, self.kappa.estimate)
        return _interval(float(estimate), draws, self.runs)

    @property
    def peak(self) -> Interval | None:
        """Connections at the highest rate; None where the estimate or an end of its interval lies outside the
        measured ones, or there is none."""
        found = _interval(
            float(_peak(self.sigma.estimate, self.kappa.estimate)), _peak(*self.draws.T[1:]), self.runs
        )
        return found if self.smallest <= found.low and found.high <= self.largest else None


def fit(connections: Sequence[float], rates_rps: Sequence[float], seed: int = 1) -> Usl | None:
    """One number of connections and one achieved rate per run; None where the rates fall so fast that no law
    with a rate of one connection is the best. ValueError for fewer than LEVELS_MIN different numbers of
    connections."""
    n, x = np.asarray(connections, dtype=float), np.asarray(rates_rps, dtype=float)
    levels = np.unique(n)
    if len(n) != len(x) or len(levels) < LEVELS_MIN or not (np.isfinite(x) & (x > 0) & (n >= 1)).all():
        raise ValueError(
            f"{LEVELS_MIN} different numbers of connections and positive rates are needed: "
            f"different={len(levels)}, runs={len(x)}"
        )
    estimate = _least_squares(n, x)
    if _law(levels[0], *estimate) < EFFICIENCY_MIN * estimate[0] * levels[0]:
        return None
    places = [np.flatnonzero(n == level) for level in levels]
    law = _law(levels, *estimate)
    misfit = float(np.max(np.abs(np.array([np.median(x[place]) for place in places]) / law - 1)))
    draws = _resampled(n, _stretched(x, places), places, seed)
    parts = [_interval(value, column, len(n)) for value, column in zip(estimate, draws.T, strict=True)]
    return Usl(
        *parts, smallest=float(levels[0]), largest=float(levels[-1]), runs=len(n), draws=draws, misfit=misfit
    )


def _law(
    n: np.ndarray | float, rate_rps: np.ndarray | float, sigma: np.ndarray | float, kappa: np.ndarray | float
) -> np.ndarray | float:
    return rate_rps * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def _peak(sigma: np.ndarray | float, kappa: np.ndarray | float) -> np.ndarray:
    """Where the law is highest; without a cost of coherence a million connections away, which is past any
    data."""
    return np.sqrt((1 - sigma) / np.maximum(kappa, 1e-12))


def _least_squares(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    """λ, σ, κ by relative errors: a run's noise grows with its rate. N / X is linear in 1/λ, σ/λ and κ/λ, so
    the best ones that are not negative need no search; where σ would be over 1, it is 1."""
    from scipy.optimize import nnls  # takes half a second to be imported, and is for one page

    scale = float(np.median(x / n))
    columns = np.column_stack([np.ones_like(n), n - 1, n * (n - 1)]) * (x / n / scale)[:, None]
    parts, _ = nnls(columns, np.ones_like(n))
    if parts[1] > parts[0]:
        (first, last), _ = nnls(
            np.column_stack([columns[:, 0] + columns[:, 1], columns[:, 2]]), np.ones_like(n)
        )
        parts = np.array([first, first, last])
    one = max(parts[0], 1e-9)
    return np.array([scale / one, parts[1] / one, parts[2] / one])


def _resampled(n: np.ndarray, x: np.ndarray, places: list[np.ndarray], seed: int) -> np.ndarray:
    """(RESAMPLES, 3): the parameters fitted to runs drawn within each level; (0, 3) where a level has one
    run."""
    if min(map(len, places)) < 2:
        return np.empty((0, 3))
    generator = np.random.default_rng(seed)
    draws = np.empty((RESAMPLES, 3))
    for row in range(RESAMPLES):
        drawn = np.concatenate([generator.choice(place, len(place)) for place in places])
        draws[row] = _least_squares(n[drawn], x[drawn])
    return draws


def _stretched(x: np.ndarray, places: list[np.ndarray]) -> np.ndarray:
    """Rates with the distances to their level's mean (of logarithms) widened: resampling n runs understates
    their variance by (n - 1) / n, and how much runs differ is known from these few alone, as a t distribution
    has it."""
    freedom = len(x) - len(places)
    if not freedom:
        return x
    tail = (1 - CONFIDENCE) / 2
    known_from_few = float(student_t.isf(tail, freedom)) / -float(special.ndtri(tail))
    logs = np.log(x)
    for place in places:
        if len(place) > 1:
            mean = logs[place].mean()
            wider = known_from_few * np.sqrt(len(place) / (len(place) - 1))
            logs[place] = mean + (logs[place] - mean) * wider
    return np.exp(logs)


def _interval(estimate: float, draws: np.ndarray, runs: int) -> Interval:
    if not len(draws):
        return Interval(float(estimate), np.nan, np.nan, runs)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Interval(float(estimate), float(min(low, estimate)), float(max(high, estimate)), runs)
