"""The distribution is that of scipy.stats, to the last bit."""

import numpy as np
from scipy import stats

from kvstudy.analyse.comparison import student_t


def test_shares_and_quantiles_are_those_of_scipy_stats():
    random = np.random.default_rng(7)
    print("seed=7")
    freedom = random.uniform(1, 60, 2000)
    t = random.normal(0, 4, 2000)
    t[:4] = 0, np.inf, -np.inf, 300
    assert np.array_equal(student_t.sf(t, freedom), stats.t.sf(t, freedom))
    p = 10 ** random.uniform(-200, 0, 2000)
    p[:3] = 0, 1, 0.5
    assert np.array_equal(student_t.isf(p, freedom), stats.t.isf(p, freedom))
    assert student_t.isf(0.025, 4) == stats.t.isf(0.025, 4)


def test_what_is_no_number_or_no_share_has_none():
    assert np.isnan(student_t.sf(np.nan, 3)) and np.isnan(student_t.isf(np.nan, 3))
    assert np.isnan(student_t.isf(1.5, 3)) and np.isnan(student_t.isf(-0.5, 3))
