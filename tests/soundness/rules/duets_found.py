"""What a duet that cannot tell says of itself: which difference it could have found. Other duets, like it but
of sides that differ by so much in either direction, have to find that in four of five.

Launches are those of ``duets_odd``. Of the first duet all launches are known, so it names what its last look
sees; *the same* is asked within 1 %, which hardly any of these show.
"""

import numpy as np
from rules.duets_odd import BATCH, ONE_IN_FIVE, Launches, heavy, normal, odd_b
from simulation import Simulation

from kvstudy.analyse.comparison import stopping
from kvstudy.analyse.comparison.location import typical_launch
from kvstudy.analyse.comparison.words import ALPHA

RULE = "duet, what it could have found"
WITHIN = 0.01


def found(launches: Launches, count: int):
    """In how many of ``trials`` duets what another one named is called different in the right direction."""

    def hits(generator: np.random.Generator, trials: int) -> int:
        named = _named(generator, trials, launches, count)
        side = generator.choice((-1, 1), trials)
        logs = launches(generator, trials, count) + (side * np.log(named))[:, None]
        differs, _ = stopping.sequential(logs, WITHIN)
        right = np.sign(typical_launch(logs).location) == side
        return int(((differs <= ALPHA) & right).sum())

    return hits


def _named(generator: np.random.Generator, trials: int, launches: Launches, count: int) -> np.ndarray:
    """Of so many duets of equal sides that are undecided and name a difference."""
    known: list[float] = []
    while len(known) < trials:
        logs = launches(generator, BATCH, count)
        undecided = np.min(stopping.sequential(logs, WITHIN), axis=0) > ALPHA
        named = stopping.could_find(typical_launch(logs))
        known += named[undecided & np.isfinite(named)].tolist()
    return np.array(known[:trials])


NORMAL, HEAVY = ("normal", normal), ("heavy tails (t3)", heavy)
EITHER_SIDE = ("one in five odd, either side", ONE_IN_FIVE)
ONE_SIDE = ("one in five odd, always b", odd_b(0.2))
SIMULATIONS = [
    Simulation(
        RULE,
        f"found in another, {count} launches: {told}",
        found(launches, count),
        4000,
        300,
        at_least=goal,
    )
    for count, goal, kinds in (
        # Of few launches, and of heavy tails, the noise is not known well enough to name what is found in
        # four of five.
        (8, 0.65, (NORMAL, EITHER_SIDE)),
        (12, 0.8, (NORMAL, EITHER_SIDE, ONE_SIDE)),
        (15, 0.8, (NORMAL, EITHER_SIDE, ONE_SIDE)),
        (15, 0.75, (HEAVY,)),
        (20, 0.8, (EITHER_SIDE, ONE_SIDE)),
    )
    for told, launches in kinds
]
