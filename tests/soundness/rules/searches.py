"""Searches for the stable rate: how often does the interval hold the knee?

The service: each trial's limit is drawn around the knee with the relative spread ``noise``; after an overload
it is lower by 20 %, half of that after the next trial that is held, and so on (``memory``), or not at all.
The knee is drawn within a factor of 1.35 of 11 250/s, searched from 500/s to 100 000/s to 5 %, in at most 40
trials.
"""

import numpy as np
from simulation import Simulation

from kvstudy.plan.objective import Answer, Objective, Search
from kvstudy.plan.search import search_stable_rate

KNEE_RPS = 11_250.0
OVERLOAD, FADES = 0.20, 0.5


def holds_the_knee(method: str, noise: float, memory: bool, at_the_top: bool = False):
    """``at_the_top``: the knee lies within 3 % of the highest rate allowed, on either side."""
    asked = Search(
        method=method,
        objective=Objective(mean="1ms"),
        lowest_rate=500,
        highest_rate=KNEE_RPS if at_the_top else 100_000,
    )
    around = 0.03 if at_the_top else 0.3

    def count(generator: np.random.Generator, trials: int) -> int:
        held = 0
        for _ in range(trials):
            knee_rps = KNEE_RPS * np.exp(generator.uniform(-around, around))
            found = search_stable_rate(asked, _service(generator, knee_rps, noise, memory))
            held += (found.held_rps or 0) <= knee_rps <= (found.missed_rps or np.inf)
        return held

    return count


def _service(generator: np.random.Generator, knee_rps: float, noise: float, memory: bool):
    lowered = 0.0

    def measure(rate_rps: float, purpose: str) -> tuple[Answer, str]:
        nonlocal lowered
        overloaded = rate_rps > knee_rps * np.exp(generator.normal(0, noise)) * (1 - lowered)
        lowered = OVERLOAD * memory if overloaded else lowered * FADES
        return (Answer.MISSED if overloaded else Answer.HELD), ""

    return measure


SIMULATIONS = [
    Simulation(
        rule=f"search ({method})",
        counted=f"the interval holds the knee, {noise:.0%} noise, "
        f"{'an overload is remembered' if memory else 'no memory'}",
        count=holds_the_knee(method, noise, memory),
        trials=300,
        trials_short=20,
        at_least=0.9,
    )
    for method in ("bisect", "mlr")
    for noise in (0.03, 0.1)
    for memory in (False, True)
] + [
    Simulation(
        rule="search (bisect)",
        counted=f"the interval holds the knee, {noise:.0%} noise, at the highest rate allowed",
        count=holds_the_knee("bisect", noise, False, at_the_top=True),
        trials=300,
        trials_short=20,
        at_least=0.9,
    )
    for noise in (0.03, 0.1)
]
