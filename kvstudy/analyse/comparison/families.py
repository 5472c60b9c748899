"""The words of many comparisons at once, corrected for how many they are.

    words(pairs, better, outcomes, share)         one word for each pair of a family
    with_reasons(pairs, better, outcomes, share)  the same, each with why it says no more

Twenty-four comparisons of six runs a side, each with 5 % of false words of its own, say at least one in 40 %
of pages where nothing differs. Holm's correction keeps that at 5 % of pages. A page with
several families gives each a share of its 5 %: the constants below. A word is then the same on every page
that says it.
"""

from collections.abc import Sequence

import numpy as np

from kvstudy.analyse.comparison.outcomes import allowed
from kvstudy.analyse.comparison.pairs import Pair
from kvstudy.analyse.comparison.words import ALPHA, CANNOT_TELL, LOST_MORE, MIN_RUNS, NEITHER, TOO_FEW, word

# Of a page's 5 %: all comparisons of options a third, as the page's own two sides, a chart's title or a
# sentence over one factor a sixth, what has a page of its own a twelfth (peers, growth), and each small
# family (a claim of the reports, a question about the ruler) a twenty-eighth. Page 00 repeats the options,
# two pages and, where all was measured, fourteen small ones. Where the same is asked of the reader's runs
# and of the reference, each spends a part of its share (Tables.part). tests/present/test_shares.py adds them
# up.
WHOLE, OPTIONS, SIDES, CHART, OWN_PAGE, SMALL = 1.0, 1 / 3, 1 / 3, 1 / 6, 1 / 12, 1 / 28


def holm(ps: Sequence[float]) -> np.ndarray:
    """Corrected p (Holm 1979); NaN counts as no evidence."""
    known = np.nan_to_num(np.asarray(ps, dtype=float), nan=1.0)
    order = np.argsort(known)
    corrected = np.empty_like(known)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(known[order] * np.arange(len(known), 0, -1)))
    return corrected


def words(
    pairs: Sequence[Pair],
    better: Sequence[str],
    outcomes: Sequence[tuple[int, int, int, int]] | None = None,
    share: float = WHOLE,
) -> list[str]:
    """``better``: of each pair, as in ``words.word``; ``outcomes``: invalid n of m before and after, of each;
    ``share`` of a page's ALPHA."""
    return [said for said, _ in with_reasons(pairs, better, outcomes, share)]


def with_reasons(
    pairs: Sequence[Pair],
    better: Sequence[str],
    outcomes: Sequence[tuple[int, int, int, int]] | None = None,
    share: float = WHOLE,
) -> list[tuple[str, str]]:
    """``words``, each with what keeps it at *cannot tell*; "" where it says more."""
    corrected, same = holm([one.p for one in pairs]), holm([one.p_same for one in pairs])
    outcomes = outcomes or [(0, 1, 0, 1)] * len(pairs)
    found = []
    for one, p, p_same, which, outcome in zip(pairs, corrected, same, better, outcomes, strict=True):
        runs = min(one.runs_before, one.runs_after)
        shown = word(one.low, one.high, p, p_same, which, runs, ALPHA * share)
        said = allowed(shown, *outcome)
        why = (
            ""
            if said != CANNOT_TELL
            else TOO_FEW
            if runs < MIN_RUNS
            else LOST_MORE
            if shown != CANNOT_TELL
            else NEITHER
        )
        found.append((said, why))
    return found
