"""A number over runs as a reader reads it: the median and how far it can be trusted."""

import pandas as pd

from kvstudy.analyse.claim import Place, median_claim
from kvstudy.present import words


def spread(values: pd.Series, formatter) -> str:
    """``median [low, high]`` over runs with the 95 % bootstrap interval; under MIN_RUNS ``median (least …
    most)``; one run: its value."""
    claim = median_claim(values.dropna(), Place(), "", "count")
    if claim is None:
        return words.MISSING
    if claim.extent is not None:
        return formatter(claim.estimate) + words.extent(*claim.extent, formatter)
    return formatter(claim.estimate) + (words.interval(*claim.interval, formatter) if claim.interval else "")
