"""How long a warm-up is recommended, and that a disturbed run does not take the recommendation away."""

import pytest
from hdrh.histogram import HdrHistogram

from kvstudy.measure import warm_up
from kvstudy.measure.warm_up import Settled, advice

QUIET = [Settled("put", 6, 9), Settled("get", 3, 4)]


def test_the_longest_of_all_undisturbed_runs_is_recommended():
    assert advice(QUIET)[-1] == "write in experiments: warm_up: 9s (the longest of 2 launches)"


@pytest.mark.parametrize("seconds", [None, 40])
def test_a_disturbed_run_neither_takes_the_recommendation_away_nor_lengthens_it(seconds):
    *lines, last = advice([*QUIET, Settled("put", seconds, seconds, "no_foreign_load 40.00 %")])
    assert (
        last
        == "write in experiments: warm_up: 9s (the longest of 2 launches; 1 disturbed from outside left out)"
    )
    assert lines[-1] == "put: left out, disturbed from outside: no_foreign_load 40.00 %"


def test_a_workload_of_which_every_run_was_disturbed_has_no_recommendation():
    assert (
        "a workload has no undisturbed run; 1 disturbed"
        in advice([QUIET[0], Settled("get", 1, 1, "no_steal 20.00 %")])[-1]
    )
    assert "no warm-up can be recommended" in advice([])[-1]


def test_an_undisturbed_run_that_did_not_settle_still_takes_it_away():
    assert "not every run settled" in advice([*QUIET, Settled("put", None, 3)])[-1]


def test_the_median_of_a_second_is_that_of_all_its_intervals():
    def row(start_s: float, length_s: float, *latencies_us: int) -> dict:
        histogram = HdrHistogram(1, 86_400_000_000, 3)
        for latency_us in latencies_us:
            histogram.record_value(latency_us)
        known = {"run_id": "a", "latency_kind": "response", "second": int(start_s // 1)}
        values = {"count": len(latencies_us), "p50_us": 0.0, "p99_us": 0.0, "max_us": 0.0}
        return (
            known
            | values
            | {"start_s": start_s, "length_s": length_s, "histogram": histogram.encode().decode()}
        )

    halves = [row(0, 0.5, 10, 10, 10), row(0.5, 0.5, 900), row(1.5, 0.5, 20)]
    medians, counts = warm_up._of_seconds(halves)
    assert (medians.tolist(), counts.tolist()) == ([10, 20], [4, 1])
    assert warm_up._of_seconds([])[0].tolist() == []
