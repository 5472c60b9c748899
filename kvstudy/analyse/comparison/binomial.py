"""The binomial distribution as scipy.special computes it: scipy.stats takes a second to be imported."""

import numpy as np
from scipy import special


def cdf(counts: np.ndarray | int, draws: int, chance: np.ndarray | float) -> np.ndarray:
    """The share of at most ``counts`` of so many draws."""
    return special.bdtr(np.asarray(counts, dtype=float), draws, chance)


def ppf(share: float, draws: int, chance: np.ndarray | float) -> np.ndarray:
    """The smallest count that the ``share`` lies at or below, as integers; one for each chance."""
    return (cdf(np.arange(draws), draws, np.expand_dims(chance, -1)) < share).sum(axis=-1)
