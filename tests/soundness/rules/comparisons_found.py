"""Beside *cannot tell* stands the difference that four of five such experiments find: do they?

A comparison that decides nothing names a difference. Another one of as many runs and of the same noise has
that difference: how often does it get a word? The noise is known from the first one's runs alone.
"""

import numpy as np
import pandas as pd
from rules.comparisons import SHAPES, Sides, rows_of
from simulation import Simulation

from kvstudy.analyse.comparison.words import CANNOT_TELL, DIFFERENT
from kvstudy.analyse.configuration import with_words

RULE = "independent runs, what they could have found"
FOUND_IN = {
    "normal": lambda generator, size: np.exp(0.05 * generator.standard_normal(size)),
    **{name: SHAPES[name] for name in ("skewed", "two modes", "heavy tails")},
}


def _words(rows: pd.DataFrame, family: int) -> pd.DataFrame:
    """Each row as the first of a page with so many, of which the others show nothing."""
    pages = []
    for place in range(len(rows)):
        page = rows.iloc[[place] * family].reset_index(drop=True)
        page.loc[1:, ["p", "p_same"]] = 1.0
        pages.append(with_words(page).iloc[[0]])
    return pd.concat(pages, ignore_index=True)


def found_in_another(shape: str, runs: int, family: int):
    def count(generator: np.random.Generator, trials: int) -> int:
        draws = FOUND_IN[shape](generator, (trials + trials // 3 + 9, 2, runs))
        first = _words(rows_of([[Sides(*pair)] for pair in draws]), family)
        told = first.loc[first["word"] == CANNOT_TELL, "found"].head(trials)
        assert len(told) == trials
        pairs = zip(FOUND_IN[shape](generator, (trials, 2, runs)), told, strict=True)
        others = rows_of([[Sides(before, by * after)] for (before, after), by in pairs])
        return int(_words(others, family)["word"].isin(DIFFERENT).sum())

    return count


SIMULATIONS = [
    Simulation(
        RULE,
        f"found in another, {runs} runs a side, {f'one of {family}' if family > 1 else 'alone'}: {shape}",
        found_in_another(shape, runs, family),
        400,
        60 if family == 1 else 8,
        at_least=goal,
    )
    for shape, goal, runs, family in (
        ("normal", 0.75, 5, 1),
        ("normal", 0.75, 6, 1),
        ("normal", 0.75, 6, 24),
        ("normal", 0.75, 10, 24),
        ("skewed", 0.75, 6, 24),
        ("two modes", 0.75, 6, 24),
        ("heavy tails", 0.65, 6, 24),
    )
]
