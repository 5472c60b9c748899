"""One simulation of soundness: studies with a known truth, and how often a rule is wrong about them.

simulation.run()            full length: an Outcome, whose ``holds`` compares the share counted with the goal
simulation.run(short=True)  a few trials; ``refuted`` is the verdict that they allow
simulations()               all of rules/*.py, by module and in their order
"""

import importlib
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

FOLDER = Path(__file__).parent
SEED = 20261123
REFUTED_BELOW = 0.001
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1])]


@dataclass(frozen=True)
class Simulation:
    """``count(generator, trials)``: in how many of so many made-up studies what is ``counted`` happened.
    ``limit``: the goal is known to be missed, and LIMITS.md says so: told in the table, and no failure."""

    rule: str
    counted: str
    count: Callable[[np.random.Generator, int], int]
    trials: int
    trials_short: int
    at_most: float | None = None
    at_least: float | None = None
    seed: int = SEED
    limit: bool = False

    def __post_init__(self) -> None:
        assert (self.at_most is None) != (self.at_least is None), f"one goal is needed: {self.counted}"

    @property
    def goal(self) -> str:
        return f"≤ {self.at_most:.1%}" if self.at_most is not None else f"≥ {self.at_least:.1%}"

    def run(self, short: bool = False) -> "Outcome":
        trials, start = self.trials_short if short else self.trials, time.perf_counter()
        # Its own stream for each: the result of one does not depend on which others ran before it.
        generator = np.random.default_rng([self.seed, zlib.crc32(f"{self.rule}: {self.counted}".encode())])
        return Outcome(self, int(self.count(generator, trials)), trials, time.perf_counter() - start)


@dataclass(frozen=True)
class Outcome:
    """``hits`` of ``trials`` had what the simulation counts; ``lasted_s``: how long it took."""

    simulation: Simulation
    hits: int
    trials: int
    lasted_s: float

    @property
    def share(self) -> float:
        return self.hits / self.trials

    @property
    def holds(self) -> bool:
        one = self.simulation
        return self.share <= one.at_most if one.at_most is not None else self.share >= one.at_least

    @property
    def refuted(self) -> bool:
        """Whether so many hits (or so few) are too unlikely under a rule that just meets the goal."""
        alternative = "greater" if self.simulation.at_most is not None else "less"
        goal = self.simulation.at_most if self.simulation.at_most is not None else self.simulation.at_least
        return stats.binomtest(self.hits, self.trials, goal, alternative=alternative).pvalue < REFUTED_BELOW

    @property
    def interval(self) -> tuple[float, float]:
        """Of the share, 95 %, by Wilson."""
        found = stats.binomtest(self.hits, self.trials).proportion_ci(0.95, method="wilson")
        return float(found.low), float(found.high)

    def __str__(self) -> str:
        return (
            f"{self.simulation.rule}: {self.simulation.counted}: {self.hits} of {self.trials} "
            f"({self.share:.1%}), "
            f"goal {self.simulation.goal}, seed {self.simulation.seed}, {self.lasted_s:.1f} s"
        )


def simulations() -> list[tuple[str, int, Simulation]]:
    """Module, place in its list, simulation."""
    names = sorted(path.stem for path in (FOLDER / "rules").glob("*.py"))
    return [
        (name, place, one)
        for name in names
        for place, one in enumerate(importlib.import_module(f"rules.{name}").SIMULATIONS)
    ]
