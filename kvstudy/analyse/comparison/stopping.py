"""Where a duet stands after each launch: what is decided of each measure, and how many launches the rest will
probably take.

    results = measure_results(values, primary, same_within, lost)  a MeasureResult per workload, loop and
                                                                   measure
    undecided(results)                                             those that are worth another launch

The unit is the launch: of each measure one log ratio per launch (``launches.py``). What is said is of the
typical launch (``location.py``): the mean over launches with a t distribution, or without the few that are
odd. Slices taken for independent would say up to a tenth of false words: what a launch compiles and where it
puts it is the same in all of its slices. Looks after each launch from FIRST_LOOK on are paid for in
``looks.py``. Of a duet

- the primary measure, named before the first launch, has an error of 5 % for itself;
- all others share another 5 % by Holm's method.

*The same within X %* needs two one-sided tests at the same looks. The interval is that of all looks until
now, each with its own limit, so it excludes 1 exactly where an uncorrected look has. Where no launch is
typical now, it holds all launches, and what earlier looks said of a value that these do not exclude is taken
back. So is *the same* where the ratio itself is X % or more by now.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from scipy import special

from kvstudy.analyse.comparison import looks, student_t
from kvstudy.analyse.comparison.families import holm
from kvstudy.analyse.comparison.launches import BETTER, COSTS, MEAN, MEASURES, PART, TAILS
from kvstudy.analyse.comparison.location import (
    RESOLUTION,
    Typical,
    group_size,
    p_agreeing,
    typical_launch,
    votes,
)
from kvstudy.analyse.comparison.lost import LOST_MORE_MAX, NOTHING_LOST, Forbidden, Lost
from kvstudy.analyse.comparison.words import ALPHA, BELOW_AND_ABOVE, CANNOT_TELL, SAME, word

FOUND = 0.8  # what could have been found is found in four of five such duets
MEASURE = [*PART, "measure"]
BOUNDS = ("log_least", "log_most")


@dataclass(frozen=True)
class AtWorst:
    """What would be said if each side had been as bad as can be in the rounds that it lost. ``least``,
    ``most``: what the last look then sees if that was a, or b, a row for each way; None where it is not
    known. ``anywhere``: the launches that may have had any worse value, of the side with more of them."""

    said: "MeasureResult"
    least: Typical | None = None
    most: Typical | None = None
    anywhere: int = 0


@dataclass(frozen=True)
class MeasureResult:
    """``ratio`` b / a of the typical launch, with its interval over launches; where no launch is typical, of
    the mean of all. ``p`` and ``p_same``: sequential, not corrected. ``noise``: standard deviation of a
    typical launch's log ratio. ``odd``: launches that weigh less than half; ``against``: the most of these on
    one side; ``is_typical``: false where the launches fall into groups. ``found``: the ratio that launches
    like these find in four of five duets, whichever side it favours (``could_find``). ``to_come``: launches
    until it is probably decided, 0 when it is, None when none of LAST_LOOK will do. ``a``, ``b``: medians
    over launches, in the measure's unit. ``last``: what the last look sees, None before the first one."""

    workload: str
    loop: str
    measure: str
    primary: bool
    launches: int
    a: float
    b: float
    ratio: float
    low: float
    high: float
    p: float
    p_same: float
    same_within: float
    noise: float
    odd: int = 0
    against: int = 0
    is_typical: bool = True
    found: float = math.inf
    word: str = CANNOT_TELL
    held_back: str = ""  # the word that the lost rounds or launches forbid
    may_be_outvoted: int = 0  # launches that hold it back, if further ones may outvote them
    flattered: bool = False  # whether they forbid to say the same of any interval
    to_come: int | None = None
    last: Typical | None = field(default=None, repr=False, compare=False)

    @property
    def decided(self) -> bool:
        return self.word != CANNOT_TELL

    @property
    def is_over(self) -> bool:
        """Whether no further launch is worth its time: it is decided, or held back for good."""
        return self.decided or bool(self.held_back and not self.may_be_outvoted)

    @property
    def better(self) -> str:
        return BETTER[self.measure]

    @property
    def apart(self) -> tuple[float, float] | None:
        """Of launches that fall into groups which agree in the word: the smallest and the largest ratio."""
        if self.last is None or self.is_typical or not self.decided:
            return None
        return math.exp(self.last.lower.outermost[0]), math.exp(self.last.upper.outermost[0])

    @property
    def in_groups(self) -> bool:
        """Whether that is why no word is said."""
        return not (self.is_typical or self.decided or self.held_back)


def measure_results(
    values: pd.DataFrame,
    primary: Mapping[str, str],
    same_within: float,
    lost: Mapping[tuple[str, str, str], Lost] | None = None,
    launches_lost: Lost = NOTHING_LOST,
) -> list[MeasureResult]:
    """``values``: launches.COLUMNS of all launches that count, in the order in which they were begun, with
    ``launch`` to tell them apart; where ``log_least`` and ``log_most`` are known, a word that holds for these
    too is said whatever was lost. ``primary``: workload, loop and measure. ``lost``: by workload, loop and
    "latency", "cost" or "errors". ``launches_lost``: launches that failed by a side's doing."""
    found, at_worst, lost = [], {}, lost or {}
    for (workload, loop, measure), group in values.groupby(MEASURE, sort=False):
        group = group.sort_values("launch", kind="stable")
        logs = group["log_ratio"].to_numpy()
        is_primary = (workload, loop, measure) == tuple(primary[name] for name in MEASURE)
        common = {
            "workload": workload,
            "loop": loop,
            "measure": measure,
            "primary": is_primary,
            "a": float(group["a"].median()),
            "b": float(group["b"].median()),
        }
        found.append(MeasureResult(**common, **looked_at(logs, same_within)))
        emptied = measure not in COSTS and lost.get((workload, loop, "latency"), NOTHING_LOST).emptied
        at_worst[workload, loop, measure] = _not_known(found[-1]) if emptied else _at_worst(found[-1], group)
    return _worded(sorted(found, key=_place), at_worst, lost, launches_lost)


def undecided(results: Sequence[MeasureResult]) -> list[MeasureResult]:
    """Of the measures that another launch may still decide."""
    return [one for one in results if not one.is_over]


def looked_at(logs: Sequence[float], same_within: float, lost: Sequence[bool] | None = None) -> dict:
    """Of one measure's log ratios, one per launch in their order: what all looks until now say. ``lost``: the
    launches that are not set aside, however odd."""
    logs = np.asarray(logs, dtype=float)[: looks.LAST_LOOK]  # interval, ratio and number of the same launches
    if len(logs) < 2:
        return _unknown(logs, same_within)
    kept = None if lost is None else np.asarray(lost, dtype=bool)[None, : looks.LAST_LOOK]
    seen = _seen(logs[None, :], same_within, kept)
    now = seen.now
    return {
        "launches": len(logs),
        "ratio": math.exp(float(now.location[0])),
        "low": float(seen.low[0]),
        "high": float(seen.high[0]),
        "p": float(seen.p[0]),
        "p_same": float(seen.p_same[0]),
        "same_within": same_within,
        "noise": float(now.error[0]) * math.sqrt(len(logs)),
        "odd": int(now.odd[0]),
        "against": int(max(now.below[0], now.above[0])),
        "is_typical": not seen.looked or bool(now.is_typical[0]),
        "last": now if seen.looked else None,
    }


@dataclass(frozen=True)
class _Seen:
    """Of all looks until now, one number per row. ``now``: what the last one sees; ``looked``: whether there
    was one; ``low``, ``high``: ratios, NaN without a look."""

    now: Typical
    looked: bool
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray
    p_same: np.ndarray


def _seen(logs: np.ndarray, same_within: float, kept: np.ndarray | None) -> _Seen:
    """``logs``: one row per measure, one column per launch."""
    found = _looks(logs, kept)
    now = found[-1] if found else typical_launch(logs, kept)
    p, p_same = _sequential(found, same_within, len(logs))
    low, high = _interval(found, len(logs))
    margin, in_groups = math.log1p(same_within), ~now.is_typical
    # Nor is it the same beside an interval that an odd launch takes beyond the margin: that of one look may
    # be outvoted by fewer launches than the interval is.
    is_beyond = ((now.below > 0) | (now.above > 0)) & ((low <= -margin) | (high >= margin))
    group_beyond = in_groups & ((now.least <= -margin) | (now.most >= margin))
    if found:
        low, high = np.minimum(low, now.location), np.maximum(high, now.location)
    else:
        low, high = np.full((2, len(logs)), math.nan)
    with np.errstate(over="ignore"):  # of launches that were tried far away
        low, high = np.exp(low), np.exp(high)
    return _Seen(
        now,
        bool(found),
        low,
        high,
        np.where(in_groups & (now.p(0.0) > looks.nominal_p(ALPHA, logs.shape[1])), 1.0, p),
        np.where((np.abs(now.location) >= margin) | is_beyond | group_beyond, 1.0, p_same),
    )


def sequential(logs: np.ndarray, same_within: float) -> tuple[np.ndarray, np.ndarray]:
    """Sequential p of no difference and of a difference of ``same_within`` or more, of many measures at once:
    one row each, one column per launch. Those of a word at some look, even if it is taken back."""
    return _sequential(_looks(logs), same_within, len(logs))


def _looks(logs: np.ndarray, lost: np.ndarray | None = None) -> list[Typical]:
    """What each look sees."""
    counts = range(looks.FIRST_LOOK, min(logs.shape[1], looks.LAST_LOOK) + 1)
    return [typical_launch(logs[:, :count], None if lost is None else lost[:, :count]) for count in counts]


def _sequential(found: Sequence[Typical], same_within: float, measures: int) -> tuple[np.ndarray, np.ndarray]:
    if not found:
        return np.ones(measures), np.ones(measures)
    counts = np.array([one.launches for one in found])
    differs = np.stack([one.p(0.0) for one in found], axis=1)
    same = np.stack([one.p_same(math.log1p(same_within)) for one in found], axis=1)
    return looks.sequential_ps(counts, differs), looks.sequential_one_sided(counts, same)


def _interval(found: Sequence[Typical], measures: int) -> tuple[np.ndarray, np.ndarray]:
    """In logarithms: what all looks leave that see something typical, or all launches where the last one does
    not."""
    low, high = np.full(measures, -math.inf), np.full(measures, math.inf)
    if not found:
        return low, high
    for one in found:
        last_low, last_high = one.interval(looks.nominal_p(ALPHA, one.launches))
        counts = one.is_typical | (one is found[-1])
        low = np.where(counts, np.maximum(low, last_low), low)
        high = np.where(counts, np.minimum(high, last_high), high)
    # looks that contradict each other: the last one, which knows most
    of_last = (low > high) | ~found[-1].is_typical
    return np.where(of_last, last_low, low), np.where(of_last, last_high, high)


def _unknown(logs: np.ndarray, same_within: float) -> dict:
    """Of one launch or none."""
    return {
        "launches": len(logs),
        "ratio": math.exp(logs[0]) if len(logs) else math.nan,
        "low": math.nan,
        "high": math.nan,
        "p": 1.0,
        "p_same": 1.0,
        "same_within": same_within,
        "noise": math.nan,
        "last": None,
    }


def launches_to_come(one: MeasureResult, error: float = ALPHA) -> int | None:
    """Until the first look that decides if the ratio, the noise and the share of odd launches stay as they
    are; None when LAST_LOOK does not. Where nothing is typical, until the sign test does, if all launches go
    on to lie on one side."""
    if one.launches < 2 or math.isnan(one.noise):
        return max(1, looks.FIRST_LOOK - one.launches)
    if not one.is_typical:
        return _until_signs_decide(one, error)
    distance, margin = abs(math.log(one.ratio)), math.log1p(one.same_within)
    for count in range(max(one.launches + 1, looks.FIRST_LOOK), looks.LAST_LOOK + 1):
        width = one.noise / math.sqrt(count)
        limit = looks.nominal_p(error, count)
        against = math.ceil(one.against / one.launches * count)
        outvoted = not against or 2 * votes(count)[against] <= limit
        differs = distance >= student_t.isf(limit / 2, count - 1) * width
        same = margin - distance >= student_t.isf(looks.nominal_p(2 * error, count) / 2, count - 1) * width
        if outvoted and (differs or same):
            return count - one.launches
    return None


def _until_signs_decide(one: MeasureResult, error: float) -> int | None:
    end = one.last and one.last.clear_of(0.0)
    if end is None:
        return None
    for count in range(max(one.launches + 1, looks.FIRST_LOOK), looks.LAST_LOOK + 1):
        p = p_agreeing(end.p(0.0, group_size(count)), count)
        if p[0] <= looks.nominal_p(error, count):
            return count - one.launches
    return None


def could_find(now: Typical, error: float = ALPHA, below: float = 0.0, above: float = 0.0) -> np.ndarray:
    """One number per row: the ratio above 1 that launches like these find in four of five duets, whichever
    side it favours; infinite before the first look and where nothing is typical.

    A difference is found where the interval excludes none. The interval's end may lie on an odd launch, far
    beyond the error of those that are not odd, in this duet or in the next: so its own reach is asked for.
    ``below``, ``above``: how far it has to reach at least, since a word of that direction must hold at worst
    too; infinite where none may be said."""
    if not looks.FIRST_LOOK <= now.launches <= looks.LAST_LOOK:
        return np.full(len(now.location), math.inf)
    low, high = now.interval_of_another(looks.nominal_p(error, now.launches), FOUND)
    reach = np.maximum(np.maximum(now.location - low, below), np.maximum(high - now.location, above))
    found = reach + student_t.isf(1 - FOUND, now.freedom) * now.error
    # Beyond what a number can hold nobody calls it a difference.
    return np.where(now.is_typical & (found < 700.0), np.exp(np.minimum(found, 700.0)), math.inf)


def _not_known(one: MeasureResult) -> AtWorst:
    return AtWorst(replace(one, p=1.0, p_same=1.0))


def _at_worst(one: MeasureResult, group: pd.DataFrame) -> AtWorst:
    """Nothing is said where the bounds are not known. A launch with a bound is not set aside: as bad as can
    be, it would be odd and count for nothing. One without may have had any worse value: a word has to hold
    for each."""
    own = group["log_ratio"].to_numpy(dtype=float)[: looks.LAST_LOOK]
    bounds = [group.get(name, pd.Series([math.nan])).to_numpy(dtype=float) for name in BOUNDS]
    if len(own) < 2 or any(np.isnan(logs).any() for logs in bounds):
        return _not_known(one)
    if all(np.array_equal(logs[: looks.LAST_LOOK], own) for logs in bounds):  # nothing was lost
        return AtWorst(one, one.last, one.last)
    least, most = (_seen_at_worst(own, logs[: looks.LAST_LOOK], one.same_within) for logs in bounds)
    nearer = least if one.ratio > 1 else most
    is_on_its_side = ((nearer.now.location > 0) == (one.ratio > 1)).all()
    said = replace(
        one,
        low=float(nearer.low.min()),
        high=float(nearer.high.max()),
        p=max(one.p, float(nearer.p.max())) if is_on_its_side else 1.0,
        p_same=max(one.p_same, float(least.p_same.max()), float(most.p_same.max())),
    )
    anywhere = max(int(np.isinf(logs[: looks.LAST_LOOK]).sum()) for logs in bounds)
    return AtWorst(said, *(side.now if side.looked else None for side in (least, most)), anywhere)


# Where launches that may have had any worse value are tried, in scales of the launches from their median:
# close by they move the estimate, farther off they are odd and vote.
_TRIED = (*np.arange(-5.0, 6.25, 0.25), 7.0, 8.0, 10.0, 13.0, 20.0, 40.0, 100.0)
_FAR = 1000.0  # as a logarithm, farther than any ratio that a number can hold
_FAR_MAX = 8  # so many of them one by one, then all: beside more of 20 launches nothing is typical
_MAD_OF_NORMAL = 1 / float(special.ndtri(0.75))


def _seen_at_worst(own: np.ndarray, bounds: np.ndarray, same_within: float) -> _Seen:
    """Of each way in which the launches without a bound may have been worse, a row: the first ones far away,
    and the others close by, at one value or their own."""
    unbound = np.flatnonzero(np.isinf(bounds))
    if not len(unbound):
        return _seen(bounds[None, :], same_within, (bounds != own)[None, :])
    outwards = np.sign(bounds[unbound[0]])
    center = float(np.median(own))
    scale = max(RESOLUTION, float(np.median(np.abs(own - center))) * _MAD_OF_NORMAL)
    far_ones = sorted({*range(min(len(unbound), _FAR_MAX) + 1), len(unbound)})
    rows = []
    for far in far_ones:
        for tried in _TRIED if far < len(unbound) else _TRIED[:1]:
            row = np.where(np.isinf(bounds), own, bounds)
            close = outwards * np.maximum(outwards * own, outwards * center + tried * scale)
            row[unbound] = close[unbound]
            row[unbound[:far]] = outwards * _FAR
            rows.append(row)
    logs = np.array(rows)
    kept = np.isfinite(bounds) & (bounds != own)
    return _seen(logs, same_within, np.broadcast_to(kept, logs.shape))


def _worded(
    results: list[MeasureResult],
    at_worst: Mapping[tuple[str, str, str], AtWorst],
    lost: Mapping[tuple[str, str, str], Lost],
    launches_lost: Lost,
) -> list[MeasureResult]:
    """The primary measure with an error of its own; the others share theirs."""
    words, worst = _words(results), [at_worst[one.workload, one.loop, one.measure] for one in results]
    worst_words = _words([one.said for one in worst])
    return [
        _spoken(one, word, worst_word, at_worst, error, _forbidden(one, lost, launches_lost))
        for one, (word, error), (worst_word, _), at_worst in zip(
            results, words, worst_words, worst, strict=True
        )
    ]


def _words(results: list[MeasureResult]) -> list[tuple[str, float]]:
    """Of each its word and the error that it was allowed."""
    words = {}
    for family in ([one for one in results if one.primary], [one for one in results if not one.primary]):
        differs, same = holm([one.p for one in family]), holm([one.p_same for one in family])
        for one, p, p_same in zip(family, differs, same, strict=True):
            words[id(one)] = (
                word(one.low, one.high, p, p_same, one.better, one.launches),
                ALPHA / max(1, len(family)),
            )
    return [words[id(one)] for one in results]


def _forbidden(
    one: MeasureResult, lost: Mapping[tuple[str, str, str], Lost], launches_lost: Lost
) -> Forbidden:
    part = lost.get((one.workload, one.loop, "cost" if one.measure in COSTS else "latency"), NOTHING_LOST)
    if one.measure not in (*TAILS, MEAN):
        return Forbidden(((part, LOST_MORE_MAX),), launches_lost)
    # A hundredth of the answers, or less, decides a tail, and a mean with it: the rounds of a compaction may
    # hold all of these, and a request without an answer would have been among the slowest. So one such round
    # more on a side is enough.
    errors = lost.get((one.workload, one.loop, "errors"), NOTHING_LOST)
    return Forbidden(((part, 0.0), (errors, 0.0)), launches_lost)


def _spoken(
    one: MeasureResult,
    found_word: str,
    worst_word: str,
    at_worst: AtWorst,
    error: float,
    forbidden: Forbidden,
) -> MeasureResult:
    said = found_word if worst_word == found_word else forbidden.by_rounds(found_word)
    said = forbidden.by_launches(said)
    # Of more launches nothing is typical, and of one that died nobody knows how bad it was.
    few = at_worst.anywhere < group_size(one.launches) and forbidden.by_launches(found_word) == found_word
    found = replace(
        one,
        word=said,
        held_back=found_word if said != found_word else "",
        may_be_outvoted=at_worst.anywhere if said != found_word and few else 0,
        flattered=forbidden.by_launches(forbidden.by_rounds(SAME)) != SAME,
        found=_found(one, at_worst, error, forbidden),
    )
    against = replace(found, against=max(found.against, found.may_be_outvoted))
    return replace(found, to_come=0 if found.decided else launches_to_come(against, error))


def _found(one: MeasureResult, at_worst: AtWorst, error: float, forbidden: Forbidden) -> float:
    """What launches like these find of a measure that may have lost rounds and launches."""
    now = one.last
    if now is None:
        return math.inf
    p = looks.nominal_p(error, now.launches)
    least, most = (None if side is None else side.interval(p) for side in (at_worst.least, at_worst.most))
    word_below, word_above = BELOW_AND_ABOVE[one.better]
    low_at_worst = math.inf if least is None else float(now.location[0] - least[0].min())
    high_at_worst = math.inf if most is None else float(most[1].max() - now.location[0])
    return float(
        could_find(
            now,
            error,
            below=forbidden.reach(word_above, low_at_worst),
            above=forbidden.reach(word_below, high_at_worst),
        )[0]
    )


def _place(one: MeasureResult) -> tuple:
    return not one.primary, one.workload, one.loop, MEASURES[one.loop].index(one.measure)
