import math

import pytest

from kvstudy.analyse.settling import settled_after_s
from kvstudy.measure.warm_up import settled


def test_a_service_that_gets_faster_for_eight_seconds_has_settled_after_eight():
    # The neighbours of a second count with it: an edge is found a second early at most.
    assert settled_after_s([60.0] * 8 + [20.0] * 22, 2.0) == 8


def test_what_is_steady_needs_no_warm_up_and_one_slow_second_is_none():
    assert settled_after_s([20.0] * 30, 2.0) == 0
    assert settled_after_s([20.0] * 15 + [90.0] + [20.0] * 14, 2.0) == 0
    assert settled_after_s([21.9] * 10 + [20.0] * 20, 2.0) == 0


def test_a_service_has_not_settled_before_its_first_answer():
    assert settled_after_s([math.nan] * 6 + [20.0] * 24, 2.0) == 6
    assert settled_after_s([20.0] * 10 + [math.nan] + [20.0] * 19, 2.0) == 0


@pytest.mark.parametrize(
    "values",
    [
        [100.0 - 3 * second for second in range(30)],
        [math.nan] * 30,
        [math.nan] * 25 + [20.0] * 5,
        [20.0] * 6,
        [],
    ],
)
def test_what_has_not_settled_before_its_last_third_is_not_called_settled(values):
    assert settled_after_s(values, 2.0) is None


@pytest.mark.parametrize("foreign, expected", [(0.01, ""), (0.6, "no_foreign_load")])
def test_what_the_run_folder_says_decides_whether_it_was_disturbed(make_run, foreign, expected):
    run = make_run("one", seconds=[range(100, 2100)] * 12, process={"foreign_cpu_share": foreign})
    assert settled(run).disturbed.startswith(expected) and bool(settled(run).disturbed) == bool(expected)
