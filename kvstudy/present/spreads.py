"""A number over runs as a reader reads it: the median and how far it can be trusted."""

import pandas as pd

from kvstudy.analyse.comparison.intervals import median_interval
from kvstudy.analyse.comparison.words import MIN_RUNS
from kvstudy.present import words


def spread(values: pd.Series, told) -> str:
    """``median [low, high]`` over runs with the 95 % bootstrap interval; under MIN_RUNS ``median (least …
    most)``; one run: its value."""
    known = values.dropna()
    if known.empty:
        return words.MISSING
    interval = median_interval(known)
    if interval.runs < MIN_RUNS:
        return told(interval.estimate) + words.extent(known.min(), known.max(), told)
    return told(interval.estimate) + words.interval(interval.low, interval.high, told)
