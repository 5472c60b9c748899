"""Do events and slow answers of the same run come together, more than chance would have it? Three permutation
tests, and all must say so.

    p_value(groups, draws, generator)      of one kind of event; each group: the repeats of one configuration
    smallest_p(groups)                     below this no number of draws can get
    in_step(groups)                        0 … 1: how far the events come at the same moment in every repeat

What is compared is the alignment: the sum, over the bins of a run, of the milliseconds of the event felt in
it, each weighted by the root of the number of slow answers that waited in it, so that one terrible moment
does not outvote all others.

1. *Exchanged*: each run gets the events of another repeat of its configuration, at the same moment. Every
   repeat begins alike, so what
   decays or beats by the run's own clock aligns as well with the events of another repeat as with its own: it
   is not told apart, and so not linked. A run's events weigh one in all, so that a repeat on a slower
   machine, with longer events and more slow answers, does not align better for it.
2. *Shifted*: the events come at another time of the same run, around a circle. It keeps apart a run that was
   bad from end to end,
   with long events and slow answers everywhere, from answers that were slow at those moments.
3. *Moved*: the events come a little earlier or later, by up to NEAR_S or a few times their own length. It
   keeps apart a bad spell of a run, or a pace at which it decays, that other repeats had at another time: in
   a bad second everything is slow and everything takes long, and that is not one for the other.

p is the largest of the three: of each null hypothesis alone it is no smaller than a valid p. All count the
order observed among the draws (Phipson and Smyth, "Permutation p-values should never be zero", 2010), so p is
never 0. With n repeats there are n! ways to exchange: in few, or in groups of one, p cannot become small.
"""

import math
from dataclasses import dataclass

import numpy as np

# How far events are moved: so long, or so many times as long as they are felt.
NEAR_S, NEAR_STRETCHES = 1.0, 3
_SAME = 1 - 1e-9  # a draw that differs by rounding alone is as good as what was observed


@dataclass(frozen=True)
class Repeats:
    """Of the runs of one configuration, on grids of the same step. ``slow``: of each, how many slow answers
    waited in each bin; ``felt_ms``: how long the kind was felt there. All of a run have its own number of
    bins."""

    slow: tuple[np.ndarray, ...]
    felt_ms: tuple[np.ndarray, ...]
    step_s: float = 0.01

    @property
    def near(self) -> int:
        """By how many bins at most events are moved to come at another time of the same spell."""
        begins = sum(
            int(np.count_nonzero(np.diff(run > 0, prepend=False) & (run > 0))) for run in self.felt_ms
        )
        felt = sum(int(np.count_nonzero(run)) for run in self.felt_ms)
        return math.ceil(max(NEAR_S / self.step_s, NEAR_STRETCHES * felt / max(1, begins)))

    @property
    def is_informative(self) -> bool:
        """Whether an exchange changes anything: slow answers and events, and someone to exchange with."""
        return (
            len(self.slow) > 1
            and any(run.any() for run in self.slow)
            and any(run.any() for run in self.felt_ms)
        )

    def aligned(self) -> np.ndarray:
        """Row i, column j: the alignment of the slow answers of run i with the events of run j at the same
        moment. Each run's events weigh one in all: a repeat in which everything took longer, events and
        answers alike, must not look as if they came together."""
        bins = max(map(len, (*self.slow, *self.felt_ms)))
        slow, felt = (
            np.stack([np.pad(run, (0, bins - len(run))) for run in runs])
            for runs in (self.slow, self.felt_ms)
        )
        return np.sqrt(slow) @ (felt / np.maximum(felt.sum(axis=1, keepdims=True), np.finfo(float).tiny)).T


def p_value(groups: list[Repeats], draws: int, generator: np.random.Generator) -> float:
    """The largest of ``exchanged_p`` and ``shifted_p``, around the run and nearby; 1 where nothing can be
    exchanged."""
    informative = [group for group in groups if group.is_informative]
    if not informative:
        return 1.0
    slow, felt_ms = (
        [run for group in informative for run in getattr(group, side)] for side in ("slow", "felt_ms")
    )
    near = [group.near for group in informative for _ in group.slow]
    return max(
        exchanged_p([group.aligned() for group in informative], draws, generator),
        shifted_p(slow, felt_ms, draws, generator),
        shifted_p(slow, felt_ms, draws, generator, near),
    )


def exchanged_p(aligned: list[np.ndarray], draws: int, generator: np.random.Generator) -> float:
    """Share of random exchanges, within each group by itself, that align at least as well. ``aligned``: of
    each group Repeats.aligned."""
    observed, exchanged = 0.0, np.zeros(draws)
    for table in aligned:
        runs = len(table)
        order = generator.permuted(np.tile(np.arange(runs), (draws, 1)), axis=1)
        observed += np.trace(table)
        exchanged += table[np.arange(runs), order].sum(axis=1)
    return _share(exchanged, observed)


def shifted_p(
    slow: list[np.ndarray],
    felt_ms: list[np.ndarray],
    draws: int,
    generator: np.random.Generator,
    near: list[int] | None = None,
) -> float:
    """Share of random shifts, one for each run, that align at least as well; ``near``: of each run, by at
    most so many bins either way."""
    observed, shifted = 0.0, np.zeros(draws)
    for place, (counts, weight) in enumerate(zip(slow, felt_ms, strict=True)):
        if not counts.any() or not weight.any():
            continue
        # Every circular shift of the weights against the counts at once: their correlation, by Fourier's
        # transform.
        around = np.fft.irfft(np.fft.rfft(np.sqrt(counts)) * np.conj(np.fft.rfft(weight)), len(counts))
        observed += around[0]
        if near is not None and 2 * near[place] + 1 < len(around):
            around = np.roll(around, near[place])[: 2 * near[place] + 1]
        shifted += generator.choice(around, draws)
    return _share(shifted, observed)


def smallest_p(groups: list[Repeats]) -> float:
    """One over the number of ways in which the runs of all groups can be exchanged."""
    return math.exp(-sum(math.lgamma(len(group.slow) + 1) for group in groups if group.is_informative))


def in_step(groups: list[Repeats]) -> float:
    """How far two repeats feel the events at the same moment, beyond chance: 0 as if at random, 1 always. As
    Cohen's kappa; the mean over groups."""
    found = []
    for group in groups:
        if not group.is_informative:
            continue
        bins = min(map(len, group.felt_ms))
        felt = np.stack([run[:bins] > 0 for run in group.felt_ms]).astype(float)
        share, runs = felt.mean(), len(felt)
        if 0 < share < 1:
            together = ((felt.sum(axis=0) ** 2).sum() - felt.sum()) / (runs * (runs - 1) * bins)
            found.append((together - share**2) / (share - share**2))
    return float(np.clip(np.mean(found), 0, 1)) if found else 0.0


def _share(drawn: np.ndarray, observed: float) -> float:
    return float((1 + np.sum(drawn >= observed * _SAME)) / (1 + len(drawn)))
