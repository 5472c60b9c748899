"""A claim is data: what is said of what, how much, how sure, from how many runs, by which rule. Only
``present`` puts it into words.

    Claim(Place("get", 4, 20_000.0), "p50", "ratio", 1.51, (1.45, 1.54), "slower", 12, "comparison",
          baseline="handler=selector", variant="handler=workers")
    comparison_claim(row, "handler=selector", "handler=workers")  of a row of ``configuration.comparisons``
    median_claim(values_us, Place("get"), "p99", "us")            a median over runs with its interval

A ratio is always variant / baseline. RULES says what each rule is and where it stands.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kvstudy.analyse.comparison.intervals import median_interval
from kvstudy.analyse.comparison.words import CANNOT_TELL, DIFFERENT, MIN_RUNS

CLOSED_LOOP = math.inf  # the offered rate of a closed loop; None: of no rate, or of several
UNITS = ("ratio", "us", "rps", "share", "count")
COMPARISON, DUET, MEDIAN, HELD, SEARCH, LINK, INTERVENTION = (
    "comparison",
    "duet",
    "median",
    "held",
    "search",
    "link",
    "intervention",
)
RULES = {
    COMPARISON: (
        "ratio of medians over runs; a t test (Welch's and Student's) and two one-sided tests, corrected "
        "for the page (analyse.comparison)"
    ),
    DUET: (
        "ratio in the typical launch of two sides loaded in turn; an interval over launches whose looks "
        "after each launch are paid for (analyse.comparison.stopping)"
    ),
    MEDIAN: "median over runs with a bootstrap interval (analyse.comparison.intervals)",
    HELD: "a rate is held when the median over repeats achieves 99 % of it (analyse.rates)",
    SEARCH: "posterior of the knee from all trials of a search (plan.knee)",
    LINK: "the largest p of three permutation tests, corrected for the page (analyse.linked)",
    INTERVENTION: "permutation within pairs of runs, as usual and with one thing held off "
    "(analyse.intervention)",
}


@dataclass(frozen=True)
class Place:
    """Where a claim holds. ``offered_rate_rps``: CLOSED_LOOP, or None where it is of no rate."""

    workload: str = ""
    connections: int | None = None
    offered_rate_rps: float | None = None
    experiment: str = ""


@dataclass(frozen=True)
class Claim:
    """``estimate`` of ``measure`` in ``unit`` (one of UNITS), with its 95 % ``interval``; None: too few runs
    for one.

    ``word``: one of ``comparison.words.WORDS`` or of another rule; "" for a plain number. ``why``: what keeps
    the word at *cannot tell*. ``runs``: how many the claim rests on; ``sides``: of baseline and variant each.
    ``ends``: the measure itself on both sides. ``also``: what changed together with the variant, and may be
    why as well. ``extent``: least and most of runs too few for an interval. ``within_percent``: the
    difference that *the same* excludes; ``findable_percent``: the one that these runs would have found; None:
    none. ``chosen_from``: of how many this is the largest.
    """

    subject: Place
    measure: str
    unit: str
    estimate: float
    interval: tuple[float, float] | None = None
    word: str = ""
    runs: int = 0
    rule: str = MEDIAN
    baseline: str = ""
    variant: str = ""
    why: str = ""
    also: tuple[str, ...] = ()
    sides: tuple[int, int] | None = None
    ends: tuple[float, float] | None = None
    extent: tuple[float, float] | None = None
    within_percent: float | None = None
    findable_percent: float | None = None
    chosen_from: int = 1

    def __post_init__(self) -> None:
        assert self.unit in UNITS, f"unknown unit: unit={self.unit}"
        assert self.rule in RULES, f"unknown rule: rule={self.rule}"

    @property
    def decided(self) -> bool:
        """Whether the word says more than *cannot tell*."""
        return self.word not in ("", CANNOT_TELL)

    @property
    def differs(self) -> bool:
        """Whether the word says that the two sides differ."""
        return self.word in DIFFERENT


def comparison_claim(row, baseline: str, variant: str, experiment: str = "") -> Claim:
    """``row``: one of ``configuration.comparisons``, as ``itertuples`` gives it."""
    found = row.found - 1 if math.isfinite(row.found) else None
    few = min(row.runs_before, row.runs_after) < MIN_RUNS
    return Claim(
        subject=place(row, experiment),
        measure=row.measure,
        unit="ratio",
        estimate=row.ratio,
        interval=None if few else _pair(row.low, row.high),
        word=row.word,
        why=row.why,
        runs=int(row.runs_before + row.runs_after),
        rule=COMPARISON,
        baseline=baseline,
        variant=variant,
        sides=(int(row.runs_before), int(row.runs_after)),
        ends=(row.before, row.after),
        within_percent=100 * row.same_within,
        findable_percent=None if found is None else 100 * found,
    )


def median_claim(
    values: Iterable[float], subject: Place, measure: str, unit: str, variant: str = ""
) -> Claim | None:
    """The median of one finite number per run; None without runs. With fewer than MIN_RUNS an extent instead
    of an interval."""
    known = np.asarray([value for value in values if value == value], dtype=float)
    if not len(known):
        return None
    found = median_interval(known)
    few = found.runs < MIN_RUNS
    return Claim(
        subject,
        measure,
        unit,
        found.estimate,
        interval=None if few else _pair(found.low, found.high),
        runs=found.runs,
        rule=MEDIAN,
        variant=variant,
        extent=(float(known.min()), float(known.max())) if few else None,
    )


def place(row, experiment: str = "") -> Place:
    """Of a row with the columns workload, connections and offered_rate_rps; a missing rate is a closed
    loop's."""
    rate = row.offered_rate_rps
    return Place(row.workload, int(row.connections), CLOSED_LOOP if rate != rate else float(rate), experiment)


def _pair(low: float, high: float) -> tuple[float, float] | None:
    return None if math.isnan(low) or math.isnan(high) else (float(low), float(high))
