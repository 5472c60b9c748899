"""Latency at neighbouring offered rates, all else equal: does it lie close together?

found = neighbouring_rates(tables)
found.pairs        one row per two neighbouring rates that were held, with ``close`` and ``apart``
found.verdict      HELD, NOT_HELD or *cannot tell*, of: every two lie close together
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from kvstudy.analyse.capacity import HELD, NOT_HELD
from kvstudy.analyse.comparison.intervals import CONFIDENCE
from kvstudy.analyse.comparison.outcomes import allowed
from kvstudy.analyse.comparison.words import CANNOT_TELL, FASTER, MIN_RUNS, SAME, SLOWER
from kvstudy.analyse.configuration import comparisons
from kvstudy.analyse.tables import Tables

PERCENTILE = 99.0
# Two latencies lie close together when their ratio, with its whole interval, is within this factor.
TOGETHER = 2.0


@dataclass(frozen=True)
class Neighbours:
    """``pairs``: rows of ``configuration.comparisons`` with the rates ``one`` and ``other``, ``close`` and
    ``apart``: neither where the runs cannot tell."""

    pairs: pd.DataFrame

    @property
    def verdict(self) -> str:
        if self.pairs["apart"].any():
            return NOT_HELD
        return HELD if len(self.pairs) and self.pairs["close"].all() else CANNOT_TELL

    @property
    def furthest(self) -> pd.Series:
        """Of those that lie apart the pair with the largest ratio, in whichever direction."""
        distance = np.log(self.pairs.loc[self.pairs["apart"], "ratio"]).abs()
        return self.pairs.loc[distance.idxmax()]


def neighbouring_rates(tables: Tables) -> Neighbours:
    """Judged by the intervals, all of them together at 95 %: no word is asked of a family. A rate at which
    the service made a larger share of the runs invalid is judged by its survivors, so nothing favourable is
    said of it (``comparison.outcomes``)."""
    pairs = _pairs(tables, CONFIDENCE)
    pairs = _pairs(tables, 1 - (1 - CONFIDENCE) / len(pairs)) if len(pairs) > 1 else pairs
    if pairs.empty:
        return Neighbours(pairs.assign(close=False, apart=False))
    sure = pairs[["runs_before", "runs_after"]].min(axis=1) >= MIN_RUNS
    close = sure & (pairs["low"] >= 1 / TOGETHER) & (pairs["high"] <= TOGETHER) & _may_be(pairs, SAME)
    apart = sure & (
        ((pairs["low"] > TOGETHER) & _may_be(pairs, SLOWER))
        | ((pairs["high"] < 1 / TOGETHER) & _may_be(pairs, FASTER))
    )
    return Neighbours(pairs.assign(close=close, apart=apart))


def _pairs(tables: Tables, confidence: float) -> pd.DataFrame:
    """Of every two neighbouring rates that have valid runs, of the whole tables: what the service made
    invalid counts."""
    rates = sorted(tables.believed().runs["offered_rate_rps"].dropna().unique())
    parts = [
        comparisons(
            tables, "offered_rate_rps", low, high, (PERCENTILE,), share=None, confidence=confidence
        ).assign(one=low, other=high)
        for low, high in pairwise(rates)
    ]
    parts = [part for part in parts if len(part)]
    pairs = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["measure"])
    return pairs[pairs["measure"] == f"p{PERCENTILE:g}"]


def _may_be(pairs: pd.DataFrame, word: str) -> pd.Series:
    found = [
        allowed(word, row.invalid_before, row.of_before, row.invalid_after, row.of_after) == word
        for row in pairs.itertuples()
    ]
    return pd.Series(found, index=pairs.index, dtype=bool)
