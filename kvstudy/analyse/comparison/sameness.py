"""*The same within X %*: two one-sided tests (Schuirmann 1987), that the ratio is not X % or more above 1 and
not as far below."""

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
        error, freedom = student_t.welch(*student_t.variances(before, after))
        distance = np.abs(after.mean(axis=1) - before.mean(axis=1))
        p = student_t.sf((margin - distance) / error, freedom)
    constant = (np.ptp(before, axis=1) == 0) & (np.ptp(after, axis=1) == 0)
    return np.where(constant, np.where(np.abs(after[:, 0] - before[:, 0]) < margin, 0.0, 1.0), p)
