"""Causes of the tail: what has nothing to do with the slow answers must not be called linked to them."""

import numpy as np
from simulation import Simulation

from kvstudy.analyse import tail

RULE = "linked"


def unrelated_bursts(generator: np.random.Generator, trials: int) -> int:
    """Bursts of three seconds on both sides, in four runs of 30 s."""

    def bursts(height):
        return np.roll(np.repeat(height, 3), generator.integers(30)).astype(float)

    wrong = 0
    for _ in range(trials):
        slow = [bursts(generator.poisson(0.4, 10) * generator.integers(1, 50, 10)) for _ in range(4)]
        weights = [bursts((generator.random(10) < 0.2) * 100) for _ in range(4)]
        wrong += tail.p_value(slow, weights, 500, generator) <= tail.SIGNIFICANCE
    return wrong


SIMULATIONS = [Simulation(RULE, "bursts that have nothing to do with the slow answers", unrelated_bursts, 600, 100, at_most=0.07)]
