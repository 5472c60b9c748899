"""The Universal Scalability Law (Gunther): throughput of N connections, with contention σ and the cost of coherence κ.

    X(N) = λ N / (1 + σ (N - 1) + κ N (N - 1))

    usl = fit(connections, rates_rps)      one entry per run, at least three different N
    usl.rate_rps(8), usl.sigma, usl.peak

Intervals resample runs within each N (a case bootstrap). Nothing is said past the data: ``rate_rps`` refuses an N outside the
measured ones, and a peak there is reported as absent, not as a number.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from kvstudy.analyse.statistics import CONFIDENCE, Interval

RESAMPLES = 400


@dataclass(frozen=True)
class Usl:
    """``lambda_rps``: rate of one connection; ``sigma`` 0 – 1; ``kappa`` ≥ 0; ``peak``: connections at the highest rate, None when it
    lies outside ``smallest`` … ``largest``. ``draws``: (resamples, 3), the parameters of each resample. ``runs``: how many runs."""

    lambda_rps: Interval
    sigma: Interval
    kappa: Interval
    smallest: float
    largest: float
    runs: int
    draws: np.ndarray

    def rate_rps(self, connections: float) -> Interval:
        """The fitted rate with its interval; ValueError outside the measured numbers of connections."""
        if not self.smallest <= connections <= self.largest:
            raise ValueError(f"no extrapolation: connections={connections}, measured={self.smallest:g} … {self.largest:g}")
        draws = _law(np.asarray(connections, dtype=float), *self.draws.T)
        estimate = _law(connections, self.lambda_rps.estimate, self.sigma.estimate, self.kappa.estimate)
        return _interval(float(estimate), draws, self.runs)

    @property
    def peak(self) -> float | None:
        sigma, kappa = self.sigma.estimate, self.kappa.estimate
        best = np.sqrt((1 - sigma) / kappa) if kappa > 0 else np.inf
        return float(best) if self.smallest <= best <= self.largest else None


def fit(connections: Sequence[float], rates_rps: Sequence[float], seed: int = 1) -> Usl:
    """One number of connections and one achieved rate per run. ValueError for fewer than three different numbers of connections."""
    n, x = np.asarray(connections, dtype=float), np.asarray(rates_rps, dtype=float)
    levels = np.unique(n)
    if len(n) != len(x) or len(levels) < 3 or not (x > 0).all() or not (n >= 1).all():
        raise ValueError(f"three different numbers of connections and positive rates are needed: different={len(levels)}, runs={len(x)}")
    estimate = _least_squares(n, x)
    generator = np.random.default_rng(seed)
    places = [np.flatnonzero(n == level) for level in levels]
    draws = np.empty((RESAMPLES, 3))
    for row in range(RESAMPLES):
        drawn = np.concatenate([generator.choice(place, len(place)) for place in places])
        draws[row] = _least_squares(n[drawn], x[drawn], start=estimate)
    parts = [_interval(value, column, len(n)) for value, column in zip(estimate, draws.T, strict=True)]
    return Usl(*parts, smallest=float(levels[0]), largest=float(levels[-1]), runs=len(n), draws=draws)


def _law(n: np.ndarray | float, rate_rps: np.ndarray | float, sigma: np.ndarray | float, kappa: np.ndarray | float) -> np.ndarray | float:
    return rate_rps * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def _least_squares(n: np.ndarray, x: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """On relative errors: a run's noise grows with its rate."""
    scale = float(np.median(x / n))
    first = np.array([1.0, 0.1, 0.001]) if start is None else start / [scale, 1, 1]
    # The bounds are kept a little inside for the start: the solver wants a point strictly between them.
    first = np.clip(first, [1e-6, 1e-9, 1e-12], [1e6, 1 - 1e-9, 1e3])
    found = least_squares(lambda p: _law(n, p[0] * scale, p[1], p[2]) / x - 1, first, bounds=([0, 0, 0], [np.inf, 1, np.inf]),
                          x_scale=[1, 0.1, 0.01])
    return found.x * [scale, 1, 1]


def _interval(estimate: float, draws: np.ndarray, runs: int) -> Interval:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Interval(float(estimate), float(min(low, estimate)), float(max(high, estimate)), runs)
