"""Looking often costs no false words: the limits spend what they may, and a sequential p is that of the look
that saw most."""

import numpy as np
from scipy import stats

from kvstudy.analyse.comparison import looks


def test_all_looks_together_err_as_often_as_they_may():
    print("seed=4")
    sums = np.cumsum(np.random.default_rng(4).normal(size=(40_000, 30)), axis=1)
    ps = 2 * stats.norm.sf(np.abs(sums) / np.sqrt(np.arange(1, 31)))
    for error in (0.05, 0.005):
        limits = [looks.nominal_p(error, launches) for launches in range(1, 31)]
        assert (ps <= limits).any(axis=1).mean() <= 1.15 * error * looks.spent(30)


def test_the_error_is_spent_by_the_number_of_launches_alone_and_never_whole():
    shares = [looks.spent(launches) for launches in range(0, looks.LAST_LOOK + 1)]
    assert shares[looks.FIRST_LOOK - 1] == 0 and shares == sorted(shares) and shares[-1] < 1
    assert abs(shares[looks.HORIZON] - looks.SPENT_AT_HORIZON) < 1e-9


def test_no_look_before_the_first_and_none_after_the_last():
    few, many = list(range(1, looks.FIRST_LOOK)), [looks.LAST_LOOK + 1]
    assert looks.sequential_p(few, [1e-9] * len(few)) == looks.sequential_p(many, [1e-9]) == 1.0


def test_a_sequential_p_reaches_an_error_exactly_where_a_look_reaches_its_limit():
    for launches in (looks.FIRST_LOOK, 9, 15, 40):
        limit = looks.nominal_p(0.05, launches)
        assert (
            looks.sequential_p([launches], [0.99 * limit])
            < 0.05
            < looks.sequential_p([launches], [1.02 * limit])
        )


def test_a_look_that_saw_something_is_not_unsaid_by_later_ones_nor_are_looks_that_were_left_out_paid_for():
    seen = looks.sequential_p([6, 7, 8], [1e-5, 0.5, 0.9])
    assert seen == looks.sequential_p([6], [1e-5]) < 0.05


def test_a_one_sided_test_is_not_told_below_what_it_may_err():
    limit = looks.nominal_p(0.10, 9) / 2
    below, above = looks.sequential_one_sided(np.array([9]), np.array([[0.99 * limit], [1.02 * limit]]))
    assert below < 0.05 < above
    assert looks.sequential_one_sided(np.array([9]), np.array([[0.7]]))[0] == 1
