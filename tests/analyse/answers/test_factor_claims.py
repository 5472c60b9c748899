"""Between which values of a factor a percentile differs the most, as data."""

from dataclasses import replace

import numpy as np
from sample import empty_tables, sample_tables

from kvstudy.analyse.answers.factors import differences


def test_the_first_claim_is_the_largest_difference_that_is_decided():
    tables = sample_tables(
        profiled=False, repeats=5, rates=(1000.0,), connections=(1, 4, 16), capacity_rps=1e9
    )
    on_four = tables.runs.loc[tables.runs["connections"] == 4, "run_id"]
    points = tables.percentiles
    slower = replace(
        tables,
        percentiles=points.assign(
            latency_us=np.where(
                points["run_id"].isin(on_four), 5 * points["latency_us"], points["latency_us"]
            )
        ),
    )
    first, *others = differences(slower, "connections").claims
    assert (
        (first.baseline, first.variant, first.word) == ("1", "4", "slower")
        and first.interval[0] > 3
        and first.sides == (5, 5)
    )
    assert {(claim.baseline, claim.variant) for claim in others} == {("1", "4"), ("1", "16")}, (
        "numbers against the smallest"
    )


def test_of_names_every_two_are_compared_and_of_nothing_none():
    tables = sample_tables(
        profiled=False,
        repeats=5,
        rates=(1000.0,),
        connections=(4,),
        workloads=("get", "put", "mixed"),
        capacity_rps=1e9,
    )
    alike = replace(tables, runs=tables.runs.assign(method="GET"))
    assert {(claim.baseline, claim.variant) for claim in differences(alike, "workload").claims} == {
        ("get", "mixed"),
        ("get", "put"),
        ("mixed", "put"),
    }
    assert differences(empty_tables(), "connections").claims == ()
