"""Runs that the service itself made invalid are an outcome of what was changed, not a reason to look away.

    outcome_p(invalid_before=0, of_before=6, invalid_after=4, of_after=6)
    allowed(word, invalid_before, of_before, invalid_after, of_after)

The runs that are left on a side that lost some are its better ones. So a side that lost a larger share is
flattered by its median: nothing favourable may be said of it, nor that it is the same. What is unfavourable
of it holds all the more.
"""

from functools import cache

from kvstudy.analyse.comparison.words import CANNOT_TELL, FAVOURABLE, SAME


@cache
def outcome_p(invalid_before: int, of_before: int, invalid_after: int, of_after: int) -> float:
    """p that both sides fail equally often: Boschloo's exact test; 1 where a side has no run or both have the
    same share."""
    if not of_before or not of_after or invalid_before * of_after == invalid_after * of_before:
        return 1.0
    from scipy import stats  # takes a second to be imported, and pages 03 to 09 ask nothing of it

    table = [[invalid_after, invalid_before], [of_after - invalid_after, of_before - invalid_before]]
    return float(stats.boschloo_exact(table).pvalue)


def allowed(word: str, invalid_before: int, of_before: int, invalid_after: int, of_after: int) -> str:
    """``word``, or *cannot tell* where the shares of invalid runs forbid it."""
    more_after = invalid_after * of_before - invalid_before * of_after
    if not more_after or word == CANNOT_TELL:
        return word
    if more_after > 0:
        return CANNOT_TELL if word in FAVOURABLE or word == SAME else word
    # Before is the flattered side: that after is worse would rest on what before lost; that it is better is
    # left to "invalid runs".
    return CANNOT_TELL
