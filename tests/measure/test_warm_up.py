"""How long a warm-up is recommended, and that a disturbed run does not take the recommendation away."""

import pytest

from kvstudy.measure.warm_up import Settled, advice

QUIET = [Settled("put", 6, 9), Settled("get", 3, 4)]


def test_the_longest_of_all_undisturbed_runs_is_recommended():
    assert advice(QUIET)[-1] == "write in experiments: warm_up: 9s (the longest of 2 launches)"


@pytest.mark.parametrize("seconds", [None, 40])
def test_a_disturbed_run_neither_takes_the_recommendation_away_nor_lengthens_it(seconds):
    *lines, last = advice([*QUIET, Settled("put", seconds, seconds, "no_foreign_load 40.00%")])
    assert (
        last
        == "write in experiments: warm_up: 9s (the longest of 2 launches; 1 disturbed from outside left out)"
    )
    assert lines[-1] == "put: left out, disturbed from outside: no_foreign_load 40.00%"


def test_a_workload_of_which_every_run_was_disturbed_has_no_recommendation():
    assert (
        "a workload has no undisturbed run; 1 disturbed"
        in advice([QUIET[0], Settled("get", 1, 1, "no_steal 20.00%")])[-1]
    )
    assert "no warm-up can be recommended" in advice([])[-1]


def test_an_undisturbed_run_that_did_not_settle_still_takes_it_away():
    assert "not every run settled" in advice([*QUIET, Settled("put", None, 3)])[-1]
