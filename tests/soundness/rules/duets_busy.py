"""Duets of a side whose slow answers all come with its own work: b compacts, and each round in which it is
busy is left out. What is left of it is its better part.

Of a hundred rounds b loses five and a one. In these five b's answers take ten times as long. p99 of all
rounds is then b's compaction, and b is slower; p99 of what is left is that of a, or better by what the change
bought.
"""

import numpy as np
import pandas as pd
from simulation import Simulation

from kvstudy.analyse.comparison import stopping
from kvstudy.analyse.comparison.launches import MEAN, P99
from kvstudy.analyse.comparison.lost import Lost
from kvstudy.analyse.comparison.words import FASTER, SAME, SLOWER

ROUNDS, LAUNCHES = 40, 12
BUSY_A, BUSY_B = 0.01, 0.05
NOISE = 0.02
RULE = "duet, a side that is busy"


def said(generator: np.random.Generator, measure: str, better: float) -> str:
    """The word for b, which is ``better`` in the rounds that are left."""
    busy_a, busy_b = (int(generator.binomial(ROUNDS * LAUNCHES, share)) for share in (BUSY_A, BUSY_B))
    logs = -better + NOISE * generator.standard_normal(LAUNCHES)
    values = pd.DataFrame(
        {
            "workload": "put",
            "loop": "rate",
            "measure": measure,
            "a": 1.0,
            "b": np.exp(logs),
            "log_ratio": logs,
            "rounds": ROUNDS,
            "launch": range(LAUNCHES),
        }
    )
    primary = {"workload": "put", "loop": "rate", "measure": measure}
    lost = {("put", "rate", "latency"): Lost(busy_a, busy_b, ROUNDS * LAUNCHES)}
    (found,) = stopping.measure_results(values, primary, 0.05, lost)
    return found.word


def _favourable(measure: str, better: float):
    return lambda generator, trials: sum(
        said(generator, measure, better) in (FASTER, SAME) for _ in range(trials)
    )


SIMULATIONS = [
    Simulation(
        RULE,
        f"{word} of the side whose rounds were left out, {measure}",
        _favourable(measure, better),
        300,
        30,
        at_most=0.05,
    )
    for measure in (P99, MEAN)
    for word, better in (("faster", 0.1), ("the same", 0.0))
] + [
    Simulation(
        RULE,
        "slower of the side whose rounds were left out, p99",
        lambda generator, trials: sum(said(generator, P99, -0.1) == SLOWER for _ in range(trials)),
        300,
        30,
        at_least=0.95,
    ),
]
