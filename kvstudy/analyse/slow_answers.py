"""When each slow answer of a run waited, and when each kind of event was felt, on one grid of time.

Where the generator kept its slowest answers one by one the grid has FINE_S; in other runs (of wrk and wrk2,
of older kvstudy, or with more slow answers than were kept) all that is known is the second, and the grid has
that.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

FINE_S, COARSE_S = 0.01, 1.0
# lengths of an event in which it is felt: while it lasts, and as long again while what had queued up is
# worked off
_FELT = 2.0
# Known by the second only: taken from the whole of it, evenly.
_BY_SECOND = frozenset({"cpu_steal", "cpu_foreign", "cpu_throttled"})


@dataclass(frozen=True)
class SlowAnswers:
    """Of one run. ``first``, ``last``: bins of the grid in which the answers of a group began and ended to
    wait; ``count``: answers in the group (one, or all slow ones of a second); ``felt_ms``: kind of event →
    how long it was felt in each bin, added up where several overlap."""

    run_id: str
    step_s: float
    first: np.ndarray
    last: np.ndarray
    count: np.ndarray
    felt_ms: dict[str, np.ndarray]
    bins: int

    @property
    def one_by_one(self) -> bool:
        return self.step_s == FINE_S

    @property
    def total(self) -> int:
        return int(self.count.sum())

    @cached_property
    def waiting(self) -> np.ndarray:
        """How many slow answers waited in each bin."""
        change = np.zeros(self.bins + 1)
        np.add.at(change, self.first, self.count)
        np.add.at(change, self.last + 1, -self.count)
        return np.cumsum(change)[:-1]

    def spells(self) -> list[tuple[float, float, int]]:
        """Stretches in which slow answers waited without a break, and how many: begin and end in seconds. Of
        a grid of seconds each by itself."""
        edges = np.flatnonzero(np.diff(np.concatenate([[0], self.waiting > 0, [0]])))
        begins, ends = edges[::2], edges[1::2]
        if not self.one_by_one:
            begins = np.flatnonzero(self.waiting)
            ends = begins + 1
        numbers = [
            int(self.count[(self.first >= begin) & (self.first < end)].sum())
            for begin, end in zip(begins, ends, strict=True)
        ]
        return [
            (begin * self.step_s, end * self.step_s, number)
            for begin, end, number in zip(begins, ends, numbers, strict=True)
        ]

    def felt(self, kinds: set[str]) -> np.ndarray:
        """Of each bin, whether an event of these kinds was felt in it."""
        felt = np.zeros(self.bins, dtype=bool)
        for kind in kinds & set(self.felt_ms):
            felt |= self.felt_ms[kind] > 0
        return felt

    def touched(self, kinds: set[str]) -> np.ndarray:
        """Of each group, whether an event of these kinds was felt while it waited."""
        return self.touched_by(self.felt(kinds))

    def touched_by(self, felt: np.ndarray) -> np.ndarray:
        """Of each group, whether something felt in the bins of ``felt``, which may be more or fewer than this
        run's, was so while it waited."""
        before = np.concatenate([[0], np.cumsum(np.pad(felt, (0, max(0, self.bins - len(felt)))))])
        return before[self.last + 1] > before[self.first]

    def touched_by_chance(self, kind: str) -> float:
        """How many answers an event of the kind would be felt by, in the mean over all shifts of the events
        around the run's clock."""
        felt = self.felt({kind})
        expected = 0.0
        for length in np.unique(self.last - self.first + 1):
            around = np.concatenate([[0], np.cumsum(np.concatenate([felt, felt[: length - 1]]))])
            expected += self.count[self.last - self.first + 1 == length].sum() * np.mean(
                around[length:] > around[:-length]
            )
        return expected


def slow_answers_of_run(
    run_id: str, seconds: pd.DataFrame, answers: pd.DataFrame, events: pd.DataFrame, threshold_us: float
) -> SlowAnswers:
    """``seconds``: its rows of tail.slow_seconds; ``answers``, ``events``: its rows of those tables."""
    length_s = int(seconds["second"].max()) + 1
    known = len(answers) and (
        answers["response_us"].min() <= threshold_us or len(answers) >= seconds["count"].sum()
    )
    step_s = FINE_S if known else COARSE_S
    bins = round(length_s / step_s)
    if known:
        slow = answers[answers["response_us"] > threshold_us]
        due_s, end_s = slow["due_s"].to_numpy(), (slow["due_s"] + slow["response_us"] / 1e6).to_numpy()
        first, last, count = due_s / step_s, end_s / step_s, np.ones(len(slow), dtype=np.int64)
    else:
        slow = seconds[seconds["slow"] > 0]
        first = last = slow["second"].to_numpy()
        count = slow["slow"].to_numpy()
    first, last = (np.clip(np.floor(edge).astype(np.int64), 0, bins - 1) for edge in (first, last))
    felt_ms = {kind: _felt_ms(kind, group, bins, step_s) for kind, group in events.groupby("kind")}
    return SlowAnswers(run_id, step_s, first, last, count, felt_ms, bins)


def felt_s(events: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """From when to when each of these events is felt, in seconds."""
    begin, length = events["start_s"].to_numpy(), events["duration_ms"].to_numpy() / 1e3
    return begin, begin + np.where(events["kind"].isin(_BY_SECOND), np.maximum(1.0, length), _FELT * length)


def _felt_ms(kind: str, events: pd.DataFrame, bins: int, step_s: float) -> np.ndarray:
    begin, end = felt_s(events)
    edges = step_s * np.arange(bins + 1)
    # How much of all events lies before each edge; what lies between two is the difference.
    before = np.clip(edges[None, :] - begin[:, None], 0, (end - begin)[:, None])
    weight = (
        events["duration_ms"].to_numpy() / 1e3 / (end - begin) if kind in _BY_SECOND else np.ones(len(events))
    )
    return 1e3 * np.maximum(np.diff(weight @ before), 0.0)
