"""Between which two values of a factor does a percentile differ the most? Everything else equal, on every
place that was measured with both."""

from itertools import combinations

import numpy as np
import pandas as pd

from kvstudy.analyse.answers import Answer
from kvstudy.analyse.claim import of_comparison
from kvstudy.analyse.comparison import families
from kvstudy.analyse.comparison.words import DIFFERENT
from kvstudy.analyse.configuration import comparisons, worded
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
    rows = worded(rows, families.CHART)
    rows = rows.assign(decided=rows["word"].isin(DIFFERENT), distance=np.log(rows["ratio"]).abs())
    rows = rows.sort_values(["decided", "distance"], ascending=False, kind="stable")
    claims = tuple(of_comparison(row, row.one, row.other) for row in rows.itertuples())
    return Answer(claims, sum(claim.runs for claim in claims))
