"""Between which values of a factor a percentile differs the most, as data."""

from dataclasses import replace

import numpy as np
from sample import empty_tables, sample_tables

from kvstudy.analyse.answers.factors import TwoLines, compared_lines, differences


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


def test_two_lines_of_a_chart_are_corrected_for_all_the_pairs_that_they_are_chosen_from():
    before, after = [100.0, 102.0, 98.0, 101.0, 99.0], [106.0, 109.0, 103.0, 107.0, 104.0]
    differ, alike = (TwoLines(before, values, (0, 5, 0, 5)) for values in (after, before))
    (alone,) = compared_lines([differ])
    chosen, *_ = compared_lines([differ, *[alike] * 44])
    assert (alone[1], chosen[1]) == ("slower", "cannot tell")
    assert alone[0].ratio == chosen[0].ratio
