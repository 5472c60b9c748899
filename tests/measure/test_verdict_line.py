"""What is said of a run when it is sealed: invalid where the pages will call it so, and by which check."""

import sys
from pathlib import Path

import pytest

from kvstudy.measure import verdict_line
from kvstudy.measure.execute import Result

sys.path.append(str(Path(__file__).parents[1] / "analyse"))
from run_maker import RunMaker


@pytest.fixture
def make_run(tmp_path):
    return RunMaker(tmp_path / "raw")


def test_a_valid_run_is_completed(make_run):
    result = Result("rates", 1)
    assert result.judge(make_run("a")) == "completed" and result.invalid == {}


def test_an_invalid_run_is_described_by_the_checks_that_it_failed_and_what_they_saw(make_run):
    result = Result("rates", 3)
    result.sealed = [
        make_run("a", process={"foreign_cpu_share": 0.79}),
        make_run("b", process={"foreign_cpu_share": 0.79}, offered_rate_rps=4000),
        make_run("c"),
    ]
    told = [result.judge(run) for run in result.sealed]
    assert told[0] == (
        "completed, but invalid: no_foreign_load: 79.00 % (required: ≤ 5 % of the CPU time used by other "
        "processes; FAIL above 20 %)"
    )
    assert (
        told[1].startswith("completed, but invalid: no_foreign_load: 79.00 %")
        and "; rate_held: rate not held: " in told[1]
    ), "others took the CPU: that may be why the rate was not held"
    assert result.summary() == "rates: 3 runs: 3 sealed, 2 invalid (no_foreign_load 2, rate_held 1)"


def test_lost_data_is_told_before_what_came_from_outside(make_run):
    lost = {"sampled": 9, "missing": 2, "wrong": 0}
    run = make_run("a", process={"foreign_cpu_share": 0.79}, data_check=lost)
    assert list(verdict_line.failed_checks(run)) == ["data_kept", "no_foreign_load"]


def test_of_many_failed_checks_the_first_two_are_listed_and_the_rest_counted():
    assert (
        verdict_line.format_verdict({"a": "1", "b": "2", "c": "3", "d": "4"})
        == "completed, but invalid: a: 1; b: 2; 2 more"
    )


def test_a_run_that_cannot_be_read_ends_no_measurement(make_run):
    run = make_run("a")
    del run.facts["duration_s"]
    assert verdict_line.failed_checks(run) == {"readable": "KeyError: 'duration_s'"}
