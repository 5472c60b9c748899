"""A number over runs as a reader reads it: the median and how far it can be trusted."""

import pandas as pd

from kvstudy.analyse.statistics import MIN_RUNS, median_interval
from kvstudy.present import words


def spread(values: pd.Series, told) -> str:
    """``median [low, high]`` over runs with the 95 % bootstrap interval; under MIN_RUNS ``median (least … most)``; one run: its value."""
    known = values.dropna()
    if known.empty:
        return words.MISSING
    interval = median_interval(known)
    if interval.runs == 1 or known.min() == known.max():
        return told(interval.estimate)
    if interval.runs < MIN_RUNS:
        return f"{told(interval.estimate)} ({told(known.min())} … {told(known.max())})"
    return f"{told(interval.estimate)} [{told(interval.low)}, {told(interval.high)}]"
