"""What a side of a duet lost by its own doing, and which words that forbids: what is left is its better part.

Lost(a=30, b=2, of=100).forbids("slower")       "cannot tell": a lost more, so nothing bad is said of b
Forbidden(((rounds, 0.05),), launches)          of one measure: what its rounds and launches forbid
"""

import math
from dataclasses import dataclass

from kvstudy.analyse.comparison.words import CANNOT_TELL, FAVOURABLE, SAME

LOST_MORE_MAX = (
    0.05  # of the rounds: so many more may be left out for what one side did before it counts as flattered
)


@dataclass(frozen=True)
class Lost:
    """Of one part over all launches, or of whole launches: ``of`` rounds, of which ``a`` and ``b`` do not
    count for what that side did. ``emptied``: launches that lost so many that they give no median: how bad
    these were nobody knows."""

    a: int = 0
    b: int = 0
    of: int = 0
    emptied: int = 0

    def forbids(self, said: str, more_max: float = LOST_MORE_MAX) -> str:
        """``said``, or *cannot tell* where it speaks for a side that lost more, or of its being the same: the
        rest is its better part. What is unfavourable of that side holds all the more."""
        if not self.of or abs(self.a - self.b) <= more_max * self.of or said == CANNOT_TELL:
            return said
        for_b = said in FAVOURABLE
        return CANNOT_TELL if said == SAME or for_b == (self.b > self.a) else said


NOTHING_LOST = Lost()


@dataclass(frozen=True)
class Forbidden:
    """Which words of one measure may not be said for what its sides lost. ``rounds``: each with the share
    that a side may lose more of; ``launches``: of which none."""

    rounds: tuple[tuple[Lost, float], ...]
    launches: Lost

    def by_rounds(self, said: str) -> str:
        """``said``, if it need not hold at worst, or else *cannot tell*."""
        for lost, more_max in self.rounds:
            said = lost.forbids(said, more_max)
        return said

    def by_launches(self, said: str) -> str:
        return self.launches.forbids(said, 0.0)

    def reach(self, said: str, at_worst: float) -> float:
        """``at_worst``, where ``said`` would have to hold there too; infinite where it may not be said, and 0
        where nothing forbids it."""
        if self.by_launches(said) != said:
            return math.inf
        return 0.0 if self.by_rounds(said) == said else at_worst
