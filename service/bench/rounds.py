"""What programs that take turns, round by round, show of their ratio; for benchmarks that no duet can be.

    ratio_of_rounds([1.1, 1.2, 1.15], [1.0, 1.05, 1.0])   Ratio(typical=1.13…, low=1.05…, high=1.21…, …)

A round's two figures share what the machine did at that time, so each round gives one ratio. Rounds are taken
as the launches of a duet are (``kvstudy/analyse/comparison/location.py``), but looked at once: ours to theirs
says the same as theirs to ours.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import psutil

from kvstudy.analyse.comparison.location import typical_launch
from kvstudy.analyse.comparison.words import ALPHA
from kvstudy.disturbance import disturbance

ATTEMPTS_MAX = 5


@dataclass(frozen=True)
class Ratio:
    """``typical``: of the typical round; ``low`` and ``high``: its 95 % interval, infinitely wide from one
    round; ``least`` and ``most``: of single rounds."""

    typical: float
    low: float
    high: float
    least: float
    most: float

    def text(self, digits: int = 3) -> str:
        """``1.051 [1.012, 1.091] (0.844–1.129)``: ratio, interval, single rounds."""
        interval = (
            f"[{self.low:.{digits}f}, {self.high:.{digits}f}]"
            if math.isfinite(self.high)
            else "[one round: no interval]"
        )
        return f"{self.typical:.{digits}f} {interval} ({self.least:.{digits}f}–{self.most:.{digits}f})"


def ratio_of_rounds(ours: list[float], theirs: list[float]) -> Ratio:
    """Of at least one round; figures are positive."""
    logs = [math.log(a / b) for a, b in zip(ours, theirs, strict=True)]
    location, low, high = logs[0], -math.inf, math.inf
    if len(logs) > 1:
        found = typical_launch(np.array([logs]))
        location, (low, high) = float(found.location[0]), (float(end[0]) for end in found.interval(ALPHA))
    return Ratio(*map(math.exp, (location, low, high, min(logs), max(logs))))


def undisturbed(step: Callable[[], dict]) -> dict:
    """What ``step`` found in the first attempt that the machine's host left alone, or in the last one;
    ``undisturbed``: whether it was left alone, by the rule for runs."""
    for _ in range(ATTEMPTS_MAX):
        steal_s, began = _steal_s(), time.monotonic()
        found = step()
        whole_s = (time.monotonic() - began) * (psutil.cpu_count() or 1)
        found["undisturbed"] = disturbance({"steal_share_mean": (_steal_s() - steal_s) / whole_s}) is None
        if found["undisturbed"]:
            break
    return found


def left_alone(rounds: Iterable[dict[str, dict]]) -> list[dict[str, dict]]:
    """The rounds no step of which stayed disturbed; a round: what ``undisturbed`` gave of each program."""
    return [one for one in rounds if all(found["undisturbed"] for found in one.values())]


def rate_summary(values: list[float]) -> str:
    return f"{statistics.median(values):,.0f} ({min(values):,.0f}–{max(values):,.0f})"


def _steal_s() -> float:
    """CPU seconds that the machine's host gave to others since the machine started."""
    return getattr(psutil.cpu_times(), "steal", 0.0)
