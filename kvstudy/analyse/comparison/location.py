"""The typical launch of a duet: where its launches' log ratios lie although a few of them are odd.

    found = typical_launch(logs)      one row per measure, one column per launch; a Typical of arrays
    found.p(0.0), found.p_same(0.05)  of no difference, and of a difference of so much or more

What is estimated is the effect in the *typical launch*, not the mean over launches. About one launch of a
real service in five is odd: memory was placed or code was compiled in another way, and one side is slower by
a tenth to two thirds. A mean and its t interval then decide nothing of the other four.

- The estimate is a bisquare M-estimate (Beaton and Tukey 1974), from the median on. Its scale is a quantile
  of the distances from the median. So it breaks down where a third of the launches are odd, and there nothing
  is said any more.
- Its error is that of Kafadar ("A biweight approach to the one-sample problem", JASA 77, 1982). It has a t
  distribution with FREEDOM of the weights as degrees of freedom. Mosteller and Tukey ("Data Analysis and
  Regression", 1977, chapter 10) took 0.7 of the launches.
- A launch is odd when it weighs less than ODD. Without an odd launch, the estimate is the mean and its error
  that of a t test. So it is with fewer than FEWEST launches, and where most of them agree to RESOLUTION:
  their scale is not known.
- Nothing is typical when more than ODD_MOST of the launches are odd, or stand apart on one side. Then a value
  is excluded where it is farther from all launches than half of what these lie apart. So is one that all of
  them lie on one side of: by a sign test, and by a t test of the nearest of them, as many as may be a group.
  Such a group may have no difference, and its launches may lie on one side by chance.
- Odd launches vote. Where half of all launches are odd, the first ones may show few of them. So a value
  that an odd launch contradicts is excluded only where a sign test excludes it too. Against are the odd
  launches of that side.

tests/soundness/rules/duets_odd.py counts how often all this is wrong.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from kvstudy.analyse.comparison import binomial, student_t

RESOLUTION = (
    0.001  # of a value that is read off a histogram of three digits: launches do not agree better than that
)
TUNING = 4.685  # scales, beyond which a launch weighs nothing: 95 % efficient of normal numbers
SCALE_QUANTILE = 2 / 3
FREEDOM = 0.8
FEWEST = 5
ODD = 0.5
ODD_MOST = 0.3
APART = 0.01  # the p of a t test at which the nearest launch of a group is not one of the others
CLEAR = 2.0  # scales, by which an odd launch must lie beyond a value to speak for it
_SCALE_OF_NORMAL = float(special.ndtri((1 + SCALE_QUANTILE) / 2))
_STEPS, _STILL = 50, 1e-4
_SLOPES_MIN = 1.5  # below it, the launches near the estimate are too few to know its error


@dataclass(frozen=True)
class End:
    """The outermost launches on one side, as few as may be a group of their own: one more than ODD_MOST of
    all. ``edge``: beyond it a value lies clearly outside all launches. ``spread``: the standard deviation of
    these ``count``."""

    outermost: np.ndarray
    edge: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    count: int

    @classmethod
    def of(cls, ordered: np.ndarray, outwards: int) -> "End":
        """``ordered``: the launches of each row, the outermost one first; ``outwards``: -1 of the lower end,
        1 of the upper one."""
        count = group_size(ordered.shape[1])
        some, outermost = ordered[:, :count], ordered[:, 0]
        spread = some.std(axis=1, ddof=1) if count > 1 else np.full(len(some), np.inf)
        spread = np.maximum(spread, RESOLUTION)
        return cls(outermost, outermost + outwards * CLEAR * spread, some.mean(axis=1), spread, count)

    def p(self, value: float, count: int | None = None) -> np.ndarray:
        """Of a t test, two-sided, that its mean is this; ``count``: if so many had this mean and spread."""
        count = count or self.count
        return 2 * student_t.sf(np.abs(self.mean - value) / self.spread * math.sqrt(count), max(1, count - 1))

    def excluded_from(self, p: float) -> np.ndarray:
        """How far from the mean, away from all launches, values begin whose p is smaller, and which lie
        beyond the edge."""
        reach = student_t.isf(p / 2, max(1, self.count - 1)) * self.spread / math.sqrt(self.count)
        return np.maximum(reach, np.abs(self.edge - self.mean))


@dataclass(frozen=True)
class Typical:
    """One number per row. ``error`` of ``location``, with ``freedom`` degrees of freedom. ``odd``: launches
    that weigh less than ODD, also where nothing ``is_typical``. ``below``, ``above``: those that vote, of
    ``launches``. ``lowest``, ``highest``: how far these reach, their own scale included; infinitely far
    inside where there are none. ``least``, ``most``: of all launches, and half as far again as these lie
    apart. ``lower``, ``upper``: the lowest launches, and the highest ones."""

    launches: int
    location: np.ndarray
    error: np.ndarray
    freedom: np.ndarray
    odd: np.ndarray
    below: np.ndarray
    above: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    least: np.ndarray
    most: np.ndarray
    lower: End
    upper: End
    is_typical: np.ndarray

    def p(self, value: float) -> np.ndarray:
        """Two-sided, that this is the typical log ratio; where nothing is typical, that of ``p_aside`` of a
        value among or near the launches."""
        found = 2 * student_t.sf(np.abs(self.location - value) / self.error, self.freedom)
        against = np.where(
            self.location > value,
            np.where(self.lowest <= value, self._votes(self.below), 0.0),
            np.where(self.highest >= value, self._votes(self.above), 0.0),
        )
        among = (self.least <= value) & (value <= self.most)
        typical = np.maximum(found, np.minimum(1.0, 2 * against))
        apart = np.minimum(np.where(among, 1.0, typical), self.p_aside(value))
        return np.where(self.is_typical, typical, apart)

    def p_aside(self, value: float) -> np.ndarray:
        """That the launches lie on both sides of a value, where all lie on one, and clearly."""
        above, below = self.lower.edge > value, self.upper.edge < value
        nearer = np.where(above, self.lower.p(value), np.where(below, self.upper.p(value), 1.0))
        return p_agreeing(nearer, self.launches)

    def p_same(self, margin: float) -> np.ndarray:
        """The larger of two one-sided ones, that it lies beyond either margin; where nothing is typical, 1 if
        a launch does or nearly does."""
        found = student_t.sf((margin - np.abs(self.location)) / self.error, self.freedom)
        above = np.where(self.highest >= margin, self._votes(self.above), 0.0)
        below = np.where(self.lowest <= -margin, self._votes(self.below), 0.0)
        beyond = (self.least <= -margin) | (self.most >= margin)
        return np.where(beyond & ~self.is_typical, 1.0, np.maximum(found, np.maximum(above, below)))

    def interval(self, p: float) -> tuple[np.ndarray, np.ndarray]:
        """Of the values whose p is larger."""
        width = student_t.isf(p / 2, self.freedom) * self.error
        low, high = self.location - width, self.location + width
        low = np.where(2 * self._votes(self.below) > p, np.minimum(low, self.lowest), low)
        high = np.where(2 * self._votes(self.above) > p, np.maximum(high, self.highest), high)
        if p_agreeing(np.zeros(1), self.launches)[0] <= p:
            lowest = self.lower.mean - self.lower.excluded_from(p / 4)
            highest = self.upper.mean + self.upper.excluded_from(p / 4)
        else:
            lowest, highest = -np.inf, np.inf
        return (
            np.where(self.is_typical, low, np.maximum(lowest, np.minimum(low, self.least))),
            np.where(self.is_typical, high, np.minimum(highest, np.maximum(high, self.most))),
        )

    def interval_of_another(self, p: float, chance: float) -> tuple[np.ndarray, np.ndarray]:
        """Where the interval of another such duet ends with this ``chance``: by then more odd launches may be
        against a value than here, as many as a binomial distribution with their share has."""
        low, high = self.interval(p)
        share = np.maximum(self.below, self.above) / self.launches
        against = binomial.ppf(chance, self.launches, share)
        outvoted = 2 * self._votes(against) <= p
        # Those of the other side lie as far away, where this one has none.
        lowest = np.where(self.below > 0, self.lowest, 2 * self.location - self.highest)
        highest = np.where(self.above > 0, self.highest, 2 * self.location - self.lowest)
        held = outvoted | (share == 0)
        return (
            np.where(held, low, np.minimum(low, lowest)),
            np.where(held, high, np.maximum(high, highest)),
        )

    def clear_of(self, value: float) -> End | None:
        """Of one measure the end that is nearer to a value which all launches lie clearly on one side of."""
        return (
            self.lower if self.lower.edge[0] > value else self.upper if self.upper.edge[0] < value else None
        )

    def _votes(self, against: np.ndarray) -> np.ndarray:
        return votes(self.launches)[against]


def p_agreeing(nearest: np.ndarray, launches: int) -> np.ndarray:
    """Two-sided, of launches that all lie on one side: the larger p of a sign test and of the t test of the
    ``nearest`` ones. Both are corrected, since a value may also be excluded by its distance, and either end
    may be the nearer one."""
    return np.minimum(1.0, np.maximum(4 * nearest, 2 * 2.0 ** (1 - launches)))


def group_size(launches: int) -> int:
    """So many are a group: one more than may be odd."""
    return math.floor(ODD_MOST * launches) + 1


def typical_launch(logs: np.ndarray, never_odd: np.ndarray | None = None) -> Typical:
    """``logs``: one row per measure, one column per launch, two at least. ``never_odd``: launches that may
    not be set aside, in the shape of ``logs``; where one of them is odd, the estimate is the mean."""
    count = logs.shape[1]
    ordered = np.sort(logs, axis=1)
    location, error, weights, scale = _bisquare(logs, quantile(ordered, 0.5))
    odd = (weights < ODD) & (count >= FEWEST)
    is_typical = (odd.mean(axis=1) <= ODD_MOST) & ~_stands_apart(ordered)
    voting = odd & is_typical[:, None]
    if never_odd is not None:
        voting &= ~(odd & never_odd).any(axis=1)[:, None]
    aside = voting.any(axis=1)
    below, above = voting & (logs < location[:, None]), voting & (logs > location[:, None])
    spread = np.maximum(logs.std(axis=1, ddof=1), RESOLUTION)
    return Typical(
        launches=count,
        location=np.where(aside, location, logs.mean(axis=1)),
        error=np.where(aside, error, spread / math.sqrt(count)),
        freedom=np.where(aside, np.maximum(1.0, FREEDOM * weights.sum(axis=1) - 1), count - 1.0),
        odd=odd.sum(axis=1),
        below=below.sum(axis=1),
        above=above.sum(axis=1),
        lowest=np.where(below, logs, np.inf).min(axis=1) - CLEAR * scale,
        highest=np.where(above, logs, -np.inf).max(axis=1) + CLEAR * scale,
        least=logs.min(axis=1) - np.ptp(logs, axis=1) / 2,
        most=logs.max(axis=1) + np.ptp(logs, axis=1) / 2,
        lower=End.of(ordered, -1),
        upper=End.of(ordered[:, ::-1], 1),
        is_typical=is_typical,
    )


def _bisquare(
    logs: np.ndarray, location: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Location, its error, the weight of each launch, and the scale; all weigh 1 where that is not known.
    ``location``: the medians, to begin with."""
    distances = np.abs(logs - location)
    scale = quantile(np.sort(distances, axis=1), SCALE_QUANTILE) / _SCALE_OF_NORMAL
    reach = np.where(scale > RESOLUTION, TUNING * scale, np.inf)
    for _ in range(_STEPS):
        near = _nearness(logs, location, reach)
        moved = (near**2 * logs).sum(axis=1, keepdims=True) / (near**2).sum(axis=1, keepdims=True)
        still = (np.abs(moved - location) <= _STILL * np.maximum(scale, RESOLUTION)).all()
        location = moved
        if still:
            break
    near = _nearness(logs, location, reach)
    weights = near**2
    slopes = np.maximum(_SLOPES_MIN, (near * (5 * near - 4)).sum(axis=1))  # of weight times distance
    squares = ((weights * (logs - location)) ** 2).sum(axis=1)
    error = np.sqrt(np.maximum(squares / (slopes * (slopes - 1)), RESOLUTION**2 / logs.shape[1]))
    return location[:, 0], error, weights, scale[:, 0]


def quantile(ordered: np.ndarray, share: float) -> np.ndarray:
    """A column: of each row, the lowest first, what numpy.quantile gives, which takes ten times as long for
    rows as short as these."""
    at = share * (ordered.shape[1] - 1)
    below = int(at)
    low, high = ordered[:, below, None], ordered[:, min(below + 1, ordered.shape[1] - 1), None]
    return low + (high - low) * (at - below) if at - below < 0.5 else high - (high - low) * (1 - (at - below))


def _nearness(logs: np.ndarray, location: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """1 at the location, 0 beyond the reach; its square is the weight."""
    return 1 - np.minimum(1.0, ((logs - location) / reach) ** 2)


def _stands_apart(ordered: np.ndarray) -> np.ndarray:
    """Whether more than ODD_MOST of the launches lie on one side of the others, and none of them could be one
    of these. ``ordered``: of each row, the lowest first."""
    count = ordered.shape[1]
    least = group_size(count)
    sizes = np.arange(max(2, least), count - least + 1)  # of the others
    apart = np.zeros(len(ordered), dtype=bool)
    for one_way in (ordered, -ordered[:, ::-1]):
        one_way = one_way - one_way[:, :1]
        means = np.cumsum(one_way, axis=1)[:, sizes - 1] / sizes
        squares = np.cumsum(one_way**2, axis=1)[:, sizes - 1]
        variances = np.maximum((squares - sizes * means**2) / (sizes - 1), RESOLUTION**2)
        apart |= (one_way[:, sizes] - means > _wide(count)[sizes - 1] * np.sqrt(variances)).any(axis=1)
    return apart


@lru_cache(maxsize=100)
def _wide(count: int) -> np.ndarray:
    """In standard deviations of one to so many launches, how far from their mean the next would lie with a
    p of APART."""
    sizes = np.arange(1, count + 1)
    return student_t.isf(APART, np.maximum(1, sizes - 1)) * np.sqrt(1 + 1 / sizes)


@lru_cache(maxsize=100)
def votes(launches: int) -> np.ndarray:
    """By how many are against: one-sided p that no more are, where half of all launches would be."""
    return binomial.cdf(np.arange(launches + 1), launches, 0.5)
