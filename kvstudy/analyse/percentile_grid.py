"""Which percentiles of a distribution are tabulated: the ones people quote, and HdrHistogram's spectrum
between them."""

import math
from collections.abc import Sequence
from functools import lru_cache
from numbers import Real

import numpy as np
import pandas as pd

from kvstudy.analyse.validity import SAMPLES_BEYOND_PRINTED
from kvstudy.errors import KvstudyError
from kvstudy.record import hdr
from kvstudy.record.generator_result import Latency

_EXACT = 5e-7  # percentiles are tabulated to six digits
QUOTED = (0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.999, 100.0)
TICKS_PER_HALF_DISTANCE = 5


def rows(latency: Latency) -> list[tuple[float, float, int, int]]:
    """(percentile, latency_us, sample_count, samples_beyond); latency_us is NaN where too few samples lie
    beyond to print it.

    The maximum is a fact, not an estimate: it is always given.
    """
    if latency.histogram is not None:
        percentiles = grid(_depth(latency.total))
        values = latency.histogram.percentiles_us(percentiles)
    else:
        percentiles = tuple(latency.printed_us)
        values = np.fromiter(latency.printed_us.values(), dtype=float)
    beyond = (
        (latency.total - hdr.ranks(latency.total, percentiles)).tolist()
        if latency.total
        else [0] * len(percentiles)
    )
    return [
        (
            percentile,
            float(value) if latency.total and _is_printed(left, percentile) else math.nan,
            latency.total,
            left,
        )
        for percentile, value, left in zip(percentiles, values, beyond, strict=True)
    ]


def printed_us(histogram: hdr.Histogram, percentiles: Sequence[float]) -> np.ndarray:
    """Latency at each of ``percentiles``, NaN where too few samples lie beyond to print it."""
    wanted = np.asarray(percentiles, dtype=float)
    if not histogram.total:
        return np.full(len(wanted), math.nan)
    beyond = histogram.total - hdr.ranks(histogram.total, wanted)
    values = np.asarray(histogram.percentiles_us(wanted), dtype=float)
    return np.where(_is_printed(beyond, wanted), values, math.nan)


def _is_printed(beyond, percentile):
    """With so many samples beyond it; of numbers or arrays of them."""
    return (beyond >= SAMPLES_BEYOND_PRINTED) | (percentile == 100)


@lru_cache
def grid(half_distances: int) -> tuple[float, ...]:
    """QUOTED and, in each of the first ``half_distances`` halvings of what is left to 100, five equal
    steps."""
    ticks = {
        100 * (1 - 0.5**half * (1 - step / (2 * TICKS_PER_HALF_DISTANCE)))
        for half in range(half_distances)
        for step in range(TICKS_PER_HALF_DISTANCE)
    }
    return tuple(sorted({round(tick, 6) for tick in ticks} | set(QUOTED)))


def check(percentile: object, maximum: bool = True) -> None:
    """KvstudyError for what is no percentile; without ``maximum`` for 100, which no answer is above, too."""
    if not isinstance(percentile, Real) or not 0 <= percentile <= 100:
        raise KvstudyError(f"no percentile: {percentile!r}", "a number from 0 to 100, as in 99.9")
    if percentile == 100 and not maximum:
        raise KvstudyError("no answer is above percentile 100", "one below it, as 99.9")


def why_not(percentiles: pd.Series, wanted: float) -> str:
    """Why no run has ``wanted``: it is not among the ``percentiles`` of any, or is too near the end."""
    if wanted in QUOTED or at(percentiles, wanted).any():
        return f"It needs {SAMPLES_BEYOND_PRINTED} samples beyond the percentile."
    quoted = ", ".join(f"{percentile:g}" for percentile in QUOTED)
    return f"Tables keep only some: {quoted}, and others between them. histogram(run_id) has all."


def at(percentiles: pd.Series | np.ndarray, wanted: float) -> pd.Series | np.ndarray:
    """Which of ``percentiles`` are ``wanted``. The ticks beside one that is quoted are as near as 0.0003: so
    this is asked here, and not of a tolerance for floats."""
    return abs(percentiles - wanted) < _EXACT


def _depth(total: int) -> int:
    """Halvings until too few samples are left beyond."""
    return max(1, math.ceil(math.log2(max(2, total / SAMPLES_BEYOND_PRINTED))))
