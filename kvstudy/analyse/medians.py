"""Medians for charts and tables that draw or print one without an interval.

medians(runs, "offered_rate_rps", "latency_us")    over the runs of each group: a Series by offered rate
median(values)                                     of all
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd


def medians(rows: pd.DataFrame, by: str | list[str], column: str) -> pd.Series:
    """Of ``column`` over the rows of each group, which are to be repeats of one another."""
    return rows.groupby(by)[column].median()


def median(values: Iterable[float]) -> float:
    return float(np.median(np.asarray(list(values), dtype=float)))
