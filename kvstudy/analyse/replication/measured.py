"""What a claim of a published report is held against: our number, from runs of ours."""

from collections.abc import Callable
from dataclasses import dataclass

from kvstudy.analyse.claim import Claim
from kvstudy.analyse.comparison.words import MIN_RUNS
from kvstudy.analyse.tables import Tables


@dataclass(frozen=True)
class Measured:
    """Our number for a claim, in the claim's unit, with its interval over ``runs`` runs; ``word``: of ratios
    that of the comparison, of numbers *cannot tell* where they are not of what was asked; ``fewest``: the
    runs of the side that has fewer, where there are two; ``mixed``: why its runs share no median.

    ``trials``: of a search, whose interval knows how few they are; ``knee``: what it found, where the number
    is that. ``at_rates_rps``: of a share, at which rates it was measured in the place of the report's own.
    ``of_time``: a percentage of the measured time, which has no unit in common with the report's."""

    value: float
    low: float
    high: float
    runs: int
    word: str | None = None
    fewest: int | None = None
    trials: bool = False
    mixed: str = ""
    knee: Claim | None = None
    at_rates_rps: tuple[float, ...] = ()
    of_time: bool = False

    @property
    def too_few(self) -> bool:
        runs = self.runs if self.fewest is None else self.fewest
        return runs < MIN_RUNS and not self.trials

    @property
    def decides_nothing(self) -> bool:
        return bool(self.mixed) or self.too_few


@dataclass(frozen=True)
class Rule:
    """How a claim is measured, and the kind of rule that judges it: see ``verdicts``. ``note``: in what ours
    is another measure than theirs."""

    measure: Callable[[Tables], Measured | None]
    kind: str = "number"
    note: str = ""
