"""The ratio of two programs that were measured side by side, round by round, with its 95 % interval.

    ratio_of_rounds([1.1, 1.2, 1.15], [1.0, 1.05, 1.0])     Ratio(mean=1.13…, low=1.05…, high=1.21…, …)

A round's two figures share what the machine did at that time, so each round gives one ratio; rounds are taken
for independent. Of the ratios' logarithms Student's t interval is taken, and given back as a factor: the mean
is the geometric one, and ours to theirs says the same as theirs to ours. Nothing but Python's own library.
"""

import math
import statistics
from dataclasses import dataclass

# Two-sided 95 % points of Student's t distribution, for 1 to 30 degrees of freedom.
T_95 = (
    12.7062,
    4.3027,
    3.1824,
    2.7764,
    2.5706,
    2.4469,
    2.3646,
    2.3060,
    2.2622,
    2.2281,
    2.2010,
    2.1788,
    2.1604,
    2.1448,
    2.1314,
    2.1199,
    2.1098,
    2.1009,
    2.0930,
    2.0860,
    2.0796,
    2.0739,
    2.0687,
    2.0639,
    2.0595,
    2.0555,
    2.0518,
    2.0484,
    2.0452,
    2.0423,
)


@dataclass(frozen=True)
class Ratio:
    """``low`` and ``high``: the 95 % interval, infinitely wide from one round; ``least`` and ``most``: of
    single rounds."""

    mean: float
    low: float
    high: float
    least: float
    most: float

    def text(self, digits: int = 3) -> str:
        """``1.051 [1.012, 1.091] (0.844–1.129)``: mean, interval, single rounds."""
        interval = (
            f"[{self.low:.{digits}f}, {self.high:.{digits}f}]"
            if math.isfinite(self.high)
            else "[one round: no interval]"
        )
        return f"{self.mean:.{digits}f} {interval} ({self.least:.{digits}f}–{self.most:.{digits}f})"


def ratio_of_rounds(ours: list[float], theirs: list[float]) -> Ratio:
    """Of at least one round; figures are positive."""
    logs = [math.log(a / b) for a, b in zip(ours, theirs, strict=True)]
    mean = statistics.fmean(logs)
    half = t_95(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    return Ratio(
        math.exp(mean), math.exp(mean - half), math.exp(mean + half), math.exp(min(logs)), math.exp(max(logs))
    )


def t_95(degrees: int) -> float:
    """Within 0.001 of the true value."""
    if degrees <= len(T_95):
        return T_95[degrees - 1]
    z = statistics.NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
