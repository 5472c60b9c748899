"""The typical launch: the mean where no launch is odd, and else without the odd ones; what it rests on."""

import numpy as np
import pytest
from scipy import stats

from kvstudy.analyse.comparison.location import FEWEST, RESOLUTION, SCALE_QUANTILE, quantile, typical_launch

USUAL = np.array([0.051, 0.044, 0.057, 0.049, 0.038, 0.062, 0.053, 0.046, 0.055, 0.041, 0.05, 0.059])


def typical(*logs: float):
    return typical_launch(np.array([logs]))


def test_without_an_odd_launch_it_is_the_mean_with_its_t_interval():
    found = typical(*USUAL)
    low, high = found.interval(0.05)
    expected = stats.t.interval(0.95, len(USUAL) - 1, USUAL.mean(), stats.sem(USUAL))
    assert found.odd[0] == 0 and (low[0], high[0]) == pytest.approx(expected)
    assert found.p(0.03)[0] == pytest.approx(stats.ttest_1samp(USUAL, 0.03).pvalue)


def test_odd_launches_do_not_move_it():
    found = typical(*USUAL, 0.45, -0.3)
    assert found.odd[0] == 2 and found.location[0] == pytest.approx(USUAL.mean(), abs=0.003)
    assert found.error[0] < 2 * stats.sem(USUAL) and found.freedom[0] < len(USUAL) - 1


def test_a_bisquare_estimate_is_that_of_statsmodels_at_the_same_scale():
    import statsmodels.api as sm

    logs = np.array([*USUAL, 0.45, -0.3])
    distances = np.abs(logs - np.median(logs))
    scale = np.quantile(distances, 2 / 3) / stats.norm.ppf(5 / 6)
    norm = sm.robust.norms.TukeyBiweight()
    expected = sm.robust.norms.estimate_location(logs, scale, norm, maxiter=200)
    assert typical(*logs).location[0] == pytest.approx(expected, abs=1e-5)


def test_it_turns_with_the_sides_and_moves_with_the_launches():
    print("seed=7")
    logs = np.random.default_rng(7).standard_t(2, size=(200, 11))
    plain, turned, moved = typical_launch(logs), typical_launch(-logs), typical_launch(logs + 3)
    np.testing.assert_allclose(turned.location, -plain.location, atol=1e-6)
    np.testing.assert_allclose(moved.location, plain.location + 3, atol=1e-6)
    np.testing.assert_allclose(turned.p(0), plain.p(0), atol=1e-6)
    np.testing.assert_array_equal(turned.is_typical, plain.is_typical)


def test_few_launches_and_such_that_agree_have_no_odd_ones():
    few = typical(0.05, 0.05, 0.06, 0.5)
    assert few.launches < FEWEST and few.odd[0] == 0 and few.location[0] == pytest.approx(0.165)
    tied = typical(*[0.05] * 9, 0.5)
    assert tied.odd[0] == 0 and tied.location[0] == pytest.approx(0.095), "their scale is not known"
    same = typical(*[0.05] * 9)
    assert same.error[0] == pytest.approx(RESOLUTION / 3) and same.is_typical[0]


def test_a_value_that_an_odd_launch_contradicts_is_excluded_by_votes_only():
    few, many = typical(*USUAL[:8], -0.3), typical(*USUAL, -0.3)
    assert few.p(0.0)[0] == pytest.approx(2 * stats.binom.cdf(1, 9, 0.5)) and few.interval(0.01)[0] < -0.3
    assert many.p(0.0)[0] == pytest.approx(2 * stats.binom.cdf(1, 13, 0.5)) and many.interval(0.01)[0] > 0
    beyond = typical(*USUAL[:8], 0.5)
    assert beyond.p(0.0)[0] < 0.001, "an odd launch that is slower still does not contradict"
    assert beyond.p_same(0.1)[0] == pytest.approx(stats.binom.cdf(1, 9, 0.5))


@pytest.mark.parametrize("odd", [[0.4, 0.41, 0.39, 0.42, 0.4, 0.38], [0.2, 0.4, 0.6, -0.4, -0.3]])
def test_where_more_than_three_in_ten_are_odd_nothing_is_typical(odd):
    found = typical(*(USUAL[:11] - 0.05), *odd)
    assert not found.is_typical[0] and found.p(0.0)[0] == found.p_same(0.05)[0] == 1
    low, high = found.interval(0.05)
    assert low[0] < 0 and high[0] >= max(odd)


# p50 of report 3's handlers, as measured: where the kernel woke the workers, on either core.
IN_TWO_GROUPS = np.log([1.695, 1.124, 1.641, 1.586, 1.156, 1.501, 1.143, 1.100, 1.158, 1.225])


def test_what_all_launches_of_two_groups_say_is_said():
    nearest, signs = np.sort(IN_TWO_GROUPS)[:4], 2 * 2.0**-9
    p = max(signs, 4 * stats.ttest_1samp(nearest, 0.0).pvalue)
    for logs in (IN_TWO_GROUPS, -IN_TWO_GROUPS):
        found = typical(*logs)
        assert not found.is_typical[0] and found.least[0] < 0 < found.most[0]
        assert found.p(0.0)[0] == pytest.approx(p) and p < 0.01
    low, high = np.exp(typical(*IN_TWO_GROUPS).interval(0.01))
    assert 1 < low[0] < 1.1 and high[0] > 1.695
    assert typical(*IN_TWO_GROUPS).interval(0.001)[0][0] < 0, "ten signs have no p of 0.001"


def test_one_launch_of_two_groups_that_contradicts_is_enough():
    found = typical(*IN_TWO_GROUPS, np.log(0.99))
    assert not found.is_typical[0] and found.p(0.0)[0] == 1


def test_a_group_without_a_difference_all_of_which_is_above_by_chance_proves_nothing():
    """Half of the launches are half as slow again; the other half are the same, and happen to lie above."""
    found = typical(0.002, 0.021, 0.001, 0.017, 0.004, 0.4, 0.41, 0.39, 0.42, 0.4)
    assert not found.is_typical[0] and found.p(0.0)[0] > 0.05
    assert found.interval(0.01)[0][0] < 0


def test_a_launch_that_may_not_be_set_aside_brings_the_mean_back():
    logs = np.array([[*USUAL, 0.45]])
    kept = np.arange(13) == 12
    found = typical_launch(logs, kept[None, :])
    assert found.location[0] == pytest.approx(logs.mean()) and found.odd[0] == 1
    assert typical_launch(logs, ~kept[None, :]).location[0] < 0.06


def test_the_quantile_of_ordered_rows_is_numpys():
    random = np.random.default_rng(11)
    print("seed=11")
    for count in range(2, 40):
        rows = np.sort(random.normal(size=(20, count)), axis=1)
        for share in (0.5, SCALE_QUANTILE, 0.0, 1.0):
            assert np.array_equal(quantile(rows, share), np.quantile(rows, share, axis=1)[:, None])
