"""Two one-sided tests are those of statsmodels, of Welch's and Student's the one that says less."""

import numpy as np
from statsmodels.stats.weightstats import ttost_ind

from kvstudy.analyse.comparison.pairs import pair
from kvstudy.analyse.comparison.sameness import same_p


def test_p_of_the_same_is_the_larger_of_two_one_sided_tests_by_welch_and_by_student():
    random = np.random.default_rng(11)
    print("seed=11")
    for runs_before, runs_after in ((2, 2), (3, 8), (6, 6), (20, 5)):
        before = random.normal(0, 0.02, (200, runs_before))
        after = random.normal(0.01, 0.03, (200, runs_after))
        margin = np.log1p(0.05)
        expected = np.maximum(
            *(
                ttost_ind(after.T, before.T, -margin, margin, usevar=variances)[0]
                for variances in ("unequal", "pooled")
            )
        )
        assert np.allclose(same_p(before, after, 0.05), expected, rtol=1e-9, atol=0)


def test_of_few_and_many_runs_hardly_a_page_says_falsely_that_they_are_the_same():
    """24 pairs whose ratio is just as large as may not be: 20 of 400 pages may say *the same* of any, and by
    chance 32."""
    random = np.random.default_rng(7)
    print("seed=7")
    for runs_before, runs_after in ((5, 20), (20, 5)):
        shape = (400 * 24,)
        before = random.normal(0, 0.03, (*shape, runs_before))
        after = random.normal(np.log1p(0.05), 0.03, (*shape, runs_after))
        p = same_p(before, after, 0.05).reshape(400, 24)
        assert (p.min(axis=1) <= 0.05 / 24).sum() <= 32


def test_nothing_is_the_same_whose_ratio_is_printed_beyond_the_margin():
    """Two groups of runs: the means are close, the medians 8 % apart."""
    before = np.repeat([1.0, 1.08], [8, 7]) * np.linspace(0.999, 1.001, 15)
    after = np.repeat([1.0, 1.08], [7, 8]) * np.linspace(0.999, 1.001, 15)
    found = pair(before, after, 0.1)
    assert found.ratio > 1.07 and found.p_same < 0.05
    assert pair(before, after, 0.05).p_same == 1
