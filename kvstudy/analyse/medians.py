"""Medians for charts and tables that draw or print one without an interval.

medians(runs, "offered_rate_rps", "latency_us")    over the runs of each group: a Series by offered rate
medians_of_repeats(runs, "work", "value")          of the groups that are repeats of one another
median(values)                                     of all
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd


def medians(rows: pd.DataFrame, by: str | list[str], column: str) -> pd.Series:
    """Of ``column`` over the rows of each group, which are to be repeats of one another."""
    return rows.groupby(by)[column].median()


def medians_of_repeats(rows: pd.DataFrame, by: str, column: str) -> pd.Series:
    """``medians`` of configured runs; none of a group whose runs are of several configurations."""
    alone = rows.groupby(by)["configuration"].transform("nunique") == 1
    return medians(rows[alone], by, column)


def median(values: Iterable[float]) -> float:
    return float(np.median(np.asarray(list(values), dtype=float)))
