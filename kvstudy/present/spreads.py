"""A number over runs as a reader reads it: the median and how far it can be trusted."""

import pandas as pd

from kvstudy.analyse.claim import Place, of_runs
from kvstudy.present import words


def spread(values: pd.Series, told) -> str:
    """``median [low, high]`` over runs with the 95 % bootstrap interval; under MIN_RUNS ``median (least …
    most)``; one run: its value."""
    claim = of_runs(values.dropna(), Place(), "", "count")
    if claim is None:
        return words.MISSING
    if claim.extent is not None:
        return told(claim.estimate) + words.extent(*claim.extent, told)
    return told(claim.estimate) + (words.interval(*claim.interval, told) if claim.interval else "")
