"""Between which two values of a factor does a percentile differ the most? Everything else equal, on every
place that was measured with both.

    differences(tables, factor)     of a page's table: every two values
    compared_lines(pairs)           of a chart: lines that differ in its factor alone, two by two
    compared_sides(tables, …)       of a page's own two sides: every measure
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from kvstudy.analyse.answers import Answer
from kvstudy.analyse.claim import comparison_claim
from kvstudy.analyse.comparison import families
from kvstudy.analyse.comparison.pairs import Pair, pair
from kvstudy.analyse.comparison.words import DIFFERENT, SAME_WITHIN
from kvstudy.analyse.configuration import RESOLUTION_US, comparisons, with_words
from kvstudy.analyse.tables import Tables


def differences(tables: Tables, factor: str, percentile: float = 99.0) -> Answer:
    """Of texts every two values, of numbers each against the smallest. First the largest difference that is
    decided, or the largest where none is; baseline and variant are the values. Without claims where nothing
    is alike."""
    values = sorted(tables.believed().runs[factor].dropna().unique())
    pairs = (
        list(combinations(values, 2))
        if all(isinstance(value, str) for value in values)
        else [(values[0], value) for value in values[1:]]
    )
    parts = [
        comparisons(tables, factor, one, other, (percentile,), share=None).assign(
            one=str(one), other=str(other)
        )
        for one, other in pairs
    ]
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["measure"])
    rows = rows[rows["measure"] == f"p{percentile:g}"]
    if rows.empty:
        return Answer((), 0)
    rows = with_words(rows, families.CHART * tables.part)
    rows = rows.assign(decided=rows["word"].isin(DIFFERENT), distance=np.log(rows["ratio"]).abs())
    rows = rows.sort_values(["decided", "distance"], ascending=False, kind="stable")
    claims = tuple(comparison_claim(row, row.one, row.other) for row in rows.itertuples())
    return Answer(claims, sum(claim.runs for claim in claims))


@dataclass(frozen=True)
class TwoLines:
    """Of a chart: their latencies by run, and invalid n of m of either."""

    before_us: Sequence[float]
    after_us: Sequence[float]
    invalid: tuple[int, int, int, int]
    same_within: float = SAME_WITHIN


def compared_lines(pairs: Sequence[TwoLines], part: float = 1.0) -> list[tuple[Pair, str, str]]:
    """Of each its ratio, its word, and what keeps that at *cannot tell*. The words share what a chart has of
    the page's error, so ``pairs`` are all that it may tell of, not the one that it does. ``part``: of the
    tables that the runs are from."""
    found = [pair(one.before_us, one.after_us, one.same_within, resolution=RESOLUTION_US) for one in pairs]
    said = families.with_reasons(
        found, ["lower"] * len(pairs), [one.invalid for one in pairs], families.CHART * part
    )
    return [(one, word, why) for one, (word, why) in zip(found, said, strict=True)]


def compared_sides(tables: Tables, factor: str, before, after, percentiles: Sequence[float]) -> pd.DataFrame:
    """``comparisons`` of a page's own two sides; their words share its part of the page's error."""
    return comparisons(tables, factor, before, after, percentiles, cpu=True, share=families.SIDES)
