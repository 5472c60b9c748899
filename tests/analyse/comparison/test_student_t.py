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


def test_errors_of_two_means_are_those_of_scipys_t_tests():
    random = np.random.default_rng(9)
    print("seed=9")
    for runs_before, runs_after in ((2, 2), (3, 8), (6, 6), (20, 5)):
        before = random.normal(0, 0.1, (30, runs_before))
        after = random.normal(0.05, 0.3, (30, runs_after))
        distance = after.mean(axis=1) - before.mean(axis=1)
        variances = student_t.variances(before, after)
        for equal, found in ((False, student_t.welch(*variances)), (True, student_t.pooled(*variances))):
            test = stats.ttest_ind(after, before, axis=1, equal_var=equal)
            p = 2 * student_t.sf(np.abs(distance) / found.error, found.freedom)
            assert np.allclose(p, test.pvalue, rtol=1e-9, atol=0)
            interval, width = test.confidence_interval(0.9), student_t.isf(0.05, found.freedom) * found.error
            assert np.allclose(interval.low, distance - width, rtol=1e-9)
            assert np.allclose(interval.high, distance + width, rtol=1e-9)


def test_of_a_side_without_spread_the_other_decides():
    found = student_t.welch(np.zeros(1), 4, np.ones(1), 5)
    assert found.freedom == 4 and found.error == np.sqrt(1 / 5)
    with np.errstate(all="ignore"):
        assert student_t.welch(np.zeros(1), 4, np.zeros(1), 5).freedom == 1
