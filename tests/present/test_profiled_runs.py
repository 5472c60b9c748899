"""Which profiled runs are shown: valid ones, and the same ones every time."""

from dataclasses import replace

import pandas as pd
import pytest
from sample import empty_tables, failed, keep, sample_tables

from kvstudy.present import profiled_runs
from kvstudy.present.profiled_runs import choice, counted, profile_of


@pytest.fixture(scope="module")
def four():
    """Two workloads, of each two profiled runs: the second label came later."""
    return keep(
        sample_tables(labels=("a", "b"), rates=(1000.0,), connections=(4,), repeats=1),
        lambda run: run.profiled,
    )


def shown(tables, workload=None):
    run = profile_of(tables, workload).runs.iloc[0]
    return run["workload"], run["label"]


def test_the_last_run_of_the_first_workload_is_taken(four):
    assert shown(four) == ("repeated_get", "b")
    assert shown(four, "unique_put") == ("unique_put", "b")
    assert shown(four, ["put", "unique_put"]) == ("unique_put", "b")


def test_a_valid_run_goes_before_the_last_and_before_the_workload_preferred(four):
    last = four.runs.loc[four.runs["label"] == "b", "run_id"]
    gets = four.runs.loc[four.runs["workload"] == "repeated_get", "run_id"]
    assert shown(failed(four, last)) == ("repeated_get", "a")
    assert shown(failed(four, gets)) == ("unique_put", "b")
    assert shown(failed(four, gets), ["repeated_get"]) == ("unique_put", "b")
    assert shown(failed(four, gets), "repeated_get") == ("repeated_get", "b")


def test_of_invalid_runs_one_with_samples_goes_before_one_of_which_the_profiler_came_too_late(four):
    none_valid = failed(four, four.runs["run_id"])
    late = four.runs.loc[(four.runs["label"] == "b") & (four.runs["workload"] == "repeated_get"), "run_id"]
    stacks = four.stacks[~four.stacks["run_id"].isin(late)]
    assert shown(none_valid) == ("repeated_get", "b")
    assert shown(replace(none_valid, stacks=stacks)) == ("repeated_get", "a")


def test_a_higher_rate_goes_before_a_later_run(four):
    first = four.runs["label"] == "a"
    faster = four.runs.assign(offered_rate_rps=four.runs["offered_rate_rps"].mask(first, 9000.0))
    assert shown(
        profiled_runs.Tables(
            **{
                name: getattr(four, name)
                for name in ("percentiles", "intervals", "slowest", "stacks", "events", "validity")
            },
            runs=faster,
        )
    ) == ("repeated_get", "a")


def test_the_sentence_says_which_run_of_how_many(four):
    assert "of 2 profiled runs of repeated_get 2 are valid" in choice(four, profile_of(four)).data
    all_failed = failed(four, four.runs["run_id"])
    assert (
        "**INVALID: no_foreign_load: 30.00 %**; no ranking" in choice(all_failed, profile_of(all_failed)).data
    )
    assert "No profiled run" in choice(empty_tables(), profile_of(empty_tables())).data
    told = choice(four, profile_of(four, "ptu")).data
    assert told.startswith("**No profiled run of this workload.** There are: ") and "repeated_get" in told


def test_invalid_runs_count_only_where_there_is_no_other(four):
    first = four.runs["run_id"].head(1)
    assert (
        len(counted(failed(four, first)).runs) == 3
        and len(counted(failed(four, four.runs["run_id"])).runs) == 4
    )


def test_a_run_that_failed_without_a_check_is_invalid_all_the_same(four):
    bare = profile_of(four)
    assert (
        profiled_runs.invalid(failed(bare, bare.runs["run_id"], observed="71 %", check="rate_held"))
        == "INVALID: rate_held: 71 %"
    )
    assert profiled_runs.invalid(bare) == ""
