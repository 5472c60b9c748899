"""Which runs stay on the same hosts when several crews measure side by side."""

import json

from trial import trial

from kvstudy.analyse.comparison.words import MIN_RUNS
from kvstudy.plan.run_plan import plan
from kvstudy.plan.shares import LEAST_REPEATS, shares


def runs(**change):
    several = {"workload": ["get", "put"], "rate": [100, 200], "fill": 100, "repeats": 5}
    return plan(trial(**several | change)).runs


def of(share):
    """Workloads, and repeats, of a share."""
    return {run.configuration.workload for run in share}, {run.repeat for run in share}


def test_so_many_repeats_as_a_word_needs_stay_together():
    assert LEAST_REPEATS == MIN_RUNS


def test_five_repeats_of_what_is_compared_stay_on_one_crew_and_workloads_part():
    found = shares(runs(), 2)
    assert sorted((min(names), len(repeats)) for names, repeats in map(of, found)) == [("get", 5), ("put", 5)]
    assert all(len(names) == 1 and len(share) == 10 for share in found for names in [of(share)[0]])


def test_workloads_that_are_compared_with_one_another_stay_on_one_crew():
    (share,) = shares(runs(rate=100), 2)
    assert of(share)[0] == {"get", "put"}


def test_repeats_are_shared_out_where_each_crew_gets_as_many_as_a_word_needs():
    ten = shares(runs(workload="get", repeats=10), 3)
    assert [sorted(of(share)[1]) for share in ten] == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]
    assert len(shares(runs(workload="get", repeats=9), 3)) == 1
    assert len(shares(runs(repeats=10), 2)) == 2, "two crews are busy with a workload each"


def test_every_run_is_in_one_share_in_the_order_of_the_plan():
    planned = runs(repeats=10, profile={"events": ["cpu"], "repeats": 2})
    found = shares(planned, 4)
    assert sorted(run.plan_index for share in found for run in share) == list(range(len(planned)))
    assert all(
        [run.plan_index for run in share] == sorted(run.plan_index for run in share) for share in found
    )
