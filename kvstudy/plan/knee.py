"""Where a service's knee is, from trials that each held or missed a rate: a posterior, not a bracket. Starts
nothing, draws nothing.

The knee is the rate that a fresh, rested service holds in half of its trials. One trial's limit differs from
it by chance, and lies lower for a while after an overload. So a trial at rate r holds with the probability

    lapse + (1 - 2 lapse) × Φ(ln(knee × (1 - penalty) / r) / spread)

where ``penalty`` is ``depth`` right after a missed trial and fades by ``persistence`` with each held one.
Knee, spread, depth and persistence are unknown; every combination on a grid keeps its likelihood, and what is
said of the knee is summed over all others (a psychometric function with a nuisance for carry-over; Kuss,
Jäkel and Wichmann 2005, "Bayesian inference for psychometric functions").

    knee = KneePosterior(lowest_rps=500, highest_rps=100_000)
    knee.add(rate_rps=12_000, held=True)        # in the order of the trials
    knee.interval()                             # (low, high): surely held, and surely missed, more often than
                                                not
"""

import numpy as np

CONFIDENCE = 0.95
# A trial answers against its rate once in a hundred for reasons that have nothing to do with the rate.
LAPSE = 0.01
KNEE_POINTS = 301
SPREADS = np.geomspace(0.005, 0.25, 12)
# (depth, persistence) of an overload's memory. Half of the prior says that there is none.
MEMORIES = np.array(
    [(0.0, 0.0)] + [(depth, persistence) for depth in (0.05, 0.1, 0.2, 0.3) for persistence in (0.0, 0.5)]
)
NO_MEMORY_PRIOR = 0.5
# The knee may lie outside the rates that are allowed, by so much in natural logarithms.
MARGIN = 0.4


class KneePosterior:
    """What trials say about the knee. ``lowest_rps``, ``highest_rps``: the rates that may be tried."""

    def __init__(self, lowest_rps: float, highest_rps: float):
        self._knees = np.linspace(np.log(lowest_rps) - MARGIN, np.log(highest_rps) + MARGIN, KNEE_POINTS)
        prior = np.full(len(MEMORIES), (1 - NO_MEMORY_PRIOR) / (len(MEMORIES) - 1))
        prior[0] = NO_MEMORY_PRIOR
        self._log_weights = np.zeros((KNEE_POINTS, len(SPREADS), len(MEMORIES))) + np.log(prior)
        self._penalties = np.zeros(len(MEMORIES))
        self._of_knees: np.ndarray | None = None  # summed over all else; None: not since the last trial

    def add(self, rate_rps: float, held: bool) -> None:
        """The next trial, in the order in which they were made: one that follows a missed one started on what
        that left behind."""
        penalties, places = np.unique(self._penalties, return_inverse=True)  # fewer than memories
        distances = self._knees[:, None, None] + np.log1p(-penalties) - np.log(rate_rps)
        probabilities = LAPSE + (1 - 2 * LAPSE) * _normal(distances / SPREADS[:, None])
        self._log_weights += np.log(probabilities if held else 1 - probabilities)[:, :, places]
        self._of_knees = None
        self._penalties = self._penalties * MEMORIES[:, 1] if held else MEMORIES[:, 0].copy()

    def quantiles(
        self, *probabilities: float, above_rps: float = 0.0, below_rps: float = np.inf
    ) -> tuple[float, ...]:
        """Rates below which the knee lies with these probabilities, if it lies between ``above_rps`` and
        ``below_rps``."""
        weights = (
            self._knee_weights()
            * (self._knees >= np.log(max(above_rps, 1e-9)))
            * (self._knees <= np.log(below_rps))
        )
        cumulated = np.concatenate([[0.0], np.cumsum(weights / weights.sum())])
        half = (self._knees[1] - self._knees[0]) / 2
        edges = np.append(self._knees - half, self._knees[-1] + half)
        return tuple(float(rate) for rate in np.exp(np.interp(probabilities, cumulated, edges)))

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """(low, high) in requests per second: the knee lies between them with probability ``confidence``."""
        tail = (1 - confidence) / 2
        low, high = self.quantiles(tail, 1 - tail)
        return low, high

    def probability_above(self, rate_rps: float) -> float:
        """That the knee lies above a rate."""
        weights = self._knee_weights()
        return float(weights[self._knees > np.log(rate_rps)].sum())

    def held_share(self, rate_rps: float, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
        """(low, median, high) of the share of trials at a rate that a rested service holds."""
        shares = _normal((self._knees[:, None] - np.log(rate_rps)) / SPREADS).ravel()
        order = np.argsort(shares)
        cumulated = np.cumsum(self._weights().sum(axis=2).ravel()[order])
        tail = (1 - confidence) / 2
        places = np.searchsorted(cumulated, [tail, 0.5, 1 - tail]).clip(max=len(order) - 1)
        low, middle, high = shares[order][places]
        return float(low), float(middle), float(high)

    def _knee_weights(self) -> np.ndarray:
        if self._of_knees is None:
            self._of_knees = self._weights().sum(axis=(1, 2))
        return self._of_knees

    def _weights(self) -> np.ndarray:
        weights = np.exp(self._log_weights - self._log_weights.max())
        return weights / weights.sum()


def _normal(values: np.ndarray) -> np.ndarray:
    """Φ."""
    # Here, since it takes a third of a second to load, on every host, and only a search asks for it.
    from scipy.special import ndtr

    return ndtr(values)
