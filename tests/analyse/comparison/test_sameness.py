"""Two one-sided tests are those of statsmodels."""

import numpy as np
from statsmodels.stats.weightstats import ttost_ind

from kvstudy.analyse.comparison.sameness import same_p


def test_p_of_the_same_is_that_of_two_one_sided_welch_tests():
    random = np.random.default_rng(11)
    print("seed=11")
    for runs_before, runs_after in ((2, 2), (3, 8), (6, 6), (20, 5)):
        before = random.normal(0, 0.02, (200, runs_before))
        after = random.normal(0.01, 0.03, (200, runs_after))
        margin = np.log1p(0.05)
        expected = ttost_ind(after.T, before.T, -margin, margin, usevar="unequal")[0]
        assert np.allclose(same_p(before, after, 0.05), expected, rtol=1e-9, atol=0)
