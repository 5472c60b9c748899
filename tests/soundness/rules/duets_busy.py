"""Duets of a side whose slow answers all come with its own work: b compacts, and each round in which it is
busy is left out. What is left of it is its better part.

Of a hundred rounds b loses five and a one. In these five b's answers take ten times as long. p99 of all
rounds is then b's compaction, and b is slower; p99 of what is left is that of a, or better by what the change
bought.

The other simulations know in which launches b lost a round. There its p99 was worse by any factor: far worse
in half of the launches, or in a third of them by just so much that b is not faster on average.
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
NOISE, LAUNCH_NOISE = 0.02, 0.1
RULE = "duet, a side that is busy"


def _values(measure: str, logs: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(
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


def said(generator: np.random.Generator, measure: str, better: float) -> str:
    """The word for b, which is ``better`` in the rounds that are left."""
    busy_a, busy_b = (int(generator.binomial(ROUNDS * LAUNCHES, share)) for share in (BUSY_A, BUSY_B))
    values = _values(measure, -better + NOISE * generator.standard_normal(LAUNCHES))
    primary = {"workload": "put", "loop": "rate", "measure": measure}
    lost = {("put", "rate", "latency"): Lost(busy_a, busy_b, ROUNDS * LAUNCHES)}
    (found,) = stopping.measure_results(values, primary, 0.05, lost)
    return found.word


def said_of_launches(generator: np.random.Generator, better: float, share: float) -> str:
    """The word for b's p99, which is ``better`` in the rounds that are left; b lost rounds in this share of
    the launches."""
    logs = -better + LAUNCH_NOISE * generator.standard_normal(LAUNCHES)
    lost = generator.permutation(LAUNCHES) < round(share * LAUNCHES)
    values = _values(P99, logs).assign(log_least=logs, log_most=np.where(lost, np.inf, logs))
    primary = {"workload": "put", "loop": "rate", "measure": P99}
    rounds = {("put", "rate", "latency"): Lost(0, int(lost.sum()), ROUNDS * LAUNCHES)}
    (found,) = stopping.measure_results(values, primary, 0.05, rounds)
    return found.word


def _said_of_launches(better: float, share: float, words: tuple[str, ...]):
    return lambda generator, trials: sum(
        said_of_launches(generator, better, share) in words for _ in range(trials)
    )


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
SIMULATIONS += [
    Simulation(RULE, told, _said_of_launches(better, share, words), 300, 30, **goal)
    for told, better, share, words, goal in (
        (
            "faster of the side that may have been worse in half of the launches, p99",
            0.5,
            0.5,
            (FASTER, SAME),
            {"at_most": 0.05},
        ),
        (
            "faster of a side that is not, where the launches that lost a round are counted, p99",
            0.1,
            0.33,
            (FASTER, SAME),
            {"at_most": 0.05},
        ),
        (
            "faster of a side that may have been worse in one of twelve launches, p99",
            0.5,
            0.08,
            (FASTER,),
            {"at_least": 0.8},
        ),
    )
]
