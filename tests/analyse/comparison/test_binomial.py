"""The distribution is that of scipy.stats."""

import numpy as np
from scipy import stats

from kvstudy.analyse.comparison import binomial


def test_shares_are_those_of_scipy_stats():
    for draws in (0, 1, 6, 20, 100):
        counts = np.arange(draws + 1)
        for chance in (0.0, 0.03, 0.5, 1.0):
            assert np.allclose(
                binomial.cdf(counts, draws, chance),
                stats.binom.cdf(counts, draws, chance),
                rtol=1e-12,
                atol=0,
            )


def test_quantiles_are_those_of_scipy_stats_one_for_each_chance():
    random = np.random.default_rng(5)
    print("seed=5")
    for draws in (1, 6, 20, 41):
        chances = np.append(random.uniform(0, 0.6, 200), 0.0)
        for share in (0.025, 0.2, 0.5, 0.8):
            expected = stats.binom.ppf(share, draws, chances).astype(int)
            assert np.array_equal(binomial.ppf(share, draws, chances), expected)
    assert binomial.ppf(0.025, 12, 0.5) == stats.binom.ppf(0.025, 12, 0.5) == 3
