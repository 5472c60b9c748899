"""*The same within X %*: two one-sided tests (Schuirmann 1987), that the ratio is not X % or more above 1 and
not as far below. Of Welch's and Student's error the one that says less, as for a difference: Welch's alone
says a false *same* on 10 % of pages of 24 pairs of 20 and 5 runs."""

import math

import numpy as np

from kvstudy.analyse.comparison import student_t


def same_p(before: np.ndarray, after: np.ndarray, within: float, slack: float = 0.0) -> np.ndarray:
    """p of logarithms, one row per pair: small where the ratio lies between 1 / (1 + within) and 1 + within
    for certain. 1 where a side has one run, and where ``slack``, by which the values themselves may be wrong,
    is all of that."""
    margin = math.log1p(within) - slack
    if min(before.shape[1], after.shape[1]) < 2 or margin <= 0:
        return np.ones(len(before))
    with np.errstate(all="ignore"):
        distance = np.abs(after.mean(axis=1) - before.mean(axis=1))
        ps = [
            student_t.sf((margin - distance) / one.error, one.freedom)
            for one in student_t.errors(before, after)
        ]
    constant = (np.ptp(before, axis=1) == 0) & (np.ptp(after, axis=1) == 0)
    return np.where(
        constant, np.where(np.abs(after[:, 0] - before[:, 0]) < margin, 0.0, 1.0), np.max(ps, axis=0)
    )
