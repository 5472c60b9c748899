"""What a claim of a published report is held against: our number, from runs of ours."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from kvstudy.analyse.claim import Claim
from kvstudy.analyse.comparison.words import MIN_RUNS, SAME_WITHIN
from kvstudy.analyse.tables import Tables

HIGHER, LOWER = "higher", "lower"  # what is worse: of a latency, of a rate


@dataclass(frozen=True)
class Measured:
    """Our number for a claim, in the claim's unit, with its interval over ``runs`` runs; ``word``: of ratios
    that of the comparison, of numbers *cannot tell* where they are not of what was asked; ``same_within``:
    what *the same* leaves open, 0.05 is 5 %; ``fewest``: the runs of the side that has fewer, where there are
    two; ``mixed``: why its runs share no median.

    ``trials``: of a search, whose interval knows how few they are; ``knee``: what it found, where the number
    is that. ``at_rates_rps``: of a share, at which rates it was measured in the place of the report's own.
    ``of_time``: a percentage of the measured time, which has no unit in common with the report's.
    ``lost``: so many runs the service lost by its own doing, so that those left are its better ones, and the
    number would be ``worse`` with them; "" where either may be. ``flattered``: of a ratio, why what runs were
    left says nothing favourable.
    ``by_duet``: the experiment whose duet it is of, with as many launches as ``runs``; ``is_own``: the
    reader's."""

    value: float
    low: float
    high: float
    runs: int
    word: str | None = None
    same_within: float = SAME_WITHIN
    fewest: int | None = None
    trials: bool = False
    mixed: str = ""
    knee: Claim | None = None
    at_rates_rps: tuple[float, ...] = ()
    of_time: bool = False
    by_duet: str = ""
    is_own: bool = False
    lost: int = 0
    worse: str = ""
    flattered: str = ""

    @property
    def bounds(self) -> tuple[float, float]:
        """Where the number may lie: its interval, open to where lost runs may have moved it."""
        low, high = (self.value if math.isnan(end) else end for end in (self.low, self.high))
        if self.lost and self.worse != LOWER:
            high = math.inf
        if self.lost and self.worse != HIGHER:
            low = -math.inf
        return low, high

    @property
    def too_few(self) -> bool:
        runs = self.runs if self.fewest is None else self.fewest
        return runs < MIN_RUNS and not self.trials

    @property
    def interval(self) -> tuple[float, float]:
        """``low`` and ``high``; NaN of too few runs, which have none."""
        return (math.nan, math.nan) if self.too_few else (self.low, self.high)

    @property
    def decides_nothing(self) -> bool:
        return bool(self.mixed) or self.too_few


@dataclass(frozen=True)
class DuetQuestion:
    """What a duet has to have asked to answer the same as a rule's runs. ``offered_rate_rps``: None is a
    closed loop."""

    experiment: str
    workload: str
    measure: str
    before: str
    after: str
    connections: int
    offered_rate_rps: float | None = None


@dataclass(frozen=True)
class Rule:
    """How a claim is measured, and the kind of rule that judges it: see ``verdicts``. ``note``: in what ours
    is another measure than theirs. ``duet``: the duet that asks the same, where one can."""

    measure: Callable[[Tables], Measured | None]
    kind: str = "number"
    note: str = ""
    duet: DuetQuestion | None = None
