import numpy as np
import pytest

from kvstudy.analyse import scalability


def rates(n, rate=10_000, sigma=0.05, kappa=0.002):
    return rate * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def test_the_parameters_of_exact_data_are_found():
    n = np.repeat([1, 2, 4, 8, 16, 32], 2)
    usl = scalability.fit(n, rates(n))
    assert usl.lambda_rps.estimate == pytest.approx(10_000, rel=1e-4)
    assert usl.sigma.estimate == pytest.approx(0.05, rel=1e-3)
    assert usl.kappa.estimate == pytest.approx(0.002, rel=1e-3)
    assert usl.peak.estimate == pytest.approx(np.sqrt(0.95 / 0.002), rel=1e-3)
    assert usl.misfit < 1e-3


def test_noisy_repeats_give_intervals_that_hold_the_truth():
    generator = np.random.default_rng(4)
    n = np.repeat([1, 2, 4, 8, 16, 32], 6)
    hits = 0
    for seed in range(10):
        usl = scalability.fit(n, rates(n) * (1 + 0.02 * generator.standard_normal(len(n))), seed=seed)
        hits += usl.sigma.low <= 0.05 <= usl.sigma.high
        within = usl.rate_rps(8)
        assert within.low <= within.estimate <= within.high
    assert hits >= 7


def test_linear_scaling_has_no_peak_and_no_contention():
    n = np.array([1, 2, 4, 8])
    usl = scalability.fit(n, 5000.0 * n)
    assert usl.sigma.estimate < 1e-3 and usl.peak is None


def test_nothing_is_said_past_the_data():
    n = np.repeat([2, 4, 8, 16], 2)
    usl = scalability.fit(n, rates(n))
    for outside in (1, 17):
        with pytest.raises(ValueError, match="no extrapolation"):
            usl.rate_rps(outside)
    assert usl.peak is None  # it would lie at 22 connections


def test_three_parameters_are_not_fitted_to_three_numbers_of_connections():
    with pytest.raises(ValueError, match="4 different numbers of connections"):
        scalability.fit([1, 2, 4, 4], [53e3, 81e3, 81e3, 75e3])


@pytest.mark.parametrize("rate", [np.inf, np.nan, 0.0])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ValueError, match="positive rates are needed"):
        scalability.fit([1, 2, 4, 8], [53e3, 81e3, rate, 75e3])


def test_a_peak_whose_interval_leaves_the_data_is_not_told():
    n = np.repeat([1, 2, 4, 8, 16, 24], 5)
    usl = scalability.fit(
        n, rates(n, kappa=0.003) * (1 + 0.1 * np.random.default_rng(3).standard_normal(len(n)))
    )
    inside = scalability._peak(usl.sigma.estimate, usl.kappa.estimate)
    print(f"peak {inside:.1f}")
    assert usl.smallest <= inside <= usl.largest and usl.peak is None


def test_one_run_of_each_number_of_connections_has_a_law_and_no_interval():
    n = np.array([1, 2, 4, 8, 16, 32])
    usl = scalability.fit(n, rates(n))
    assert (
        usl.sigma.estimate == pytest.approx(0.05, rel=1e-3)
        and np.isnan([usl.sigma.low, usl.sigma.high, usl.rate_rps(8).low]).all()
    )
    assert usl.peak is None


def test_a_law_that_does_not_fit_says_how_far_off_it_is():
    n = np.repeat([1, 2, 4, 8], 2)
    assert scalability.fit(n, np.where(n == 4, 0.6, 1.0) * rates(n)).misfit > 0.1


@pytest.mark.parametrize("n", [[2, 4, 8, 16], [4, 8, 16, 32]])
@pytest.mark.parametrize("power", [1.0, 2.0])
def test_where_rates_fall_so_fast_that_no_connection_has_a_rate_of_its_own_there_is_no_law(n, power):
    """Any λ, σ and κ in proportion would do: 5·10¹⁰ requests per second of one connection, and no contention,
    was said of 1 000 of two."""
    n = np.repeat(n, 2)
    assert scalability.fit(n, 1000.0 / (n - 1) ** power) is None


def test_where_rates_fall_from_the_fewest_connections_on_a_law_still_may_be_the_best():
    n = np.repeat([1, 2, 4, 8], 2)
    usl = scalability.fit(n, rates(n, sigma=0.9, kappa=0.4))
    assert usl.lambda_rps.estimate == pytest.approx(10_000, rel=1e-3)
    assert usl.kappa.estimate == pytest.approx(0.4, rel=1e-3)


def test_of_two_runs_each_the_intervals_hold_the_truth_more_often_than_a_plain_bootstrap_does():
    """That one holds it in 44 of these 60; how much runs differ is known from four degrees of freedom."""
    generator, n, hits = np.random.default_rng(4), np.repeat([2, 4, 8, 16], 2), 0
    for seed in range(60):
        within = scalability.fit(n, rates(n) * np.exp(0.03 * generator.standard_normal(8)), seed).rate_rps(8)
        hits += within.low <= rates(8) <= within.high
    assert hits >= 48


def test_one_run_at_some_number_of_connections_leaves_the_others_their_spread():
    n = np.array([1, 2, 4, 8, 16, 16])
    usl = scalability.fit(n, rates(n) * np.array([1, 1, 1, 1, 0.9, 1.1]))
    assert np.isnan(usl.sigma.low) and usl.misfit < 0.2
