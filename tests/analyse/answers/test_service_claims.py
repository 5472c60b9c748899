"""What the study says of the service's speed, as data: no sentence is read here."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sample import empty_tables, failed, sample_tables

from kvstudy.analyse.answers import service
from kvstudy.analyse.claim import HELD, Place

QUESTIONS = (
    service.p99_of_workloads,
    service.rates_held,
    service.repeated_against_unique,
    service.more_connections,
    service.waiting,
    service.searches,
)


def measured(**changes):
    return sample_tables(profiled=False, repeats=5, connections=(4,), **changes)


def slower(tables, factor, workload):
    """``tables`` whose runs of ``workload`` have latencies ``factor`` times as long."""
    mine = tables.percentiles["run_id"].isin(tables.runs.loc[tables.runs["workload"] == workload, "run_id"])
    return replace(
        tables,
        percentiles=tables.percentiles.assign(
            latency_us=tables.percentiles["latency_us"].where(
                ~mine, factor * tables.percentiles["latency_us"]
            )
        ),
    )


@pytest.mark.parametrize("ask", QUESTIONS)
def test_what_nobody_measured_has_no_answer(ask):
    assert ask(empty_tables()) is None


def test_without_a_valid_run_there_is_no_claim_but_the_checks_that_failed():
    tables = measured()
    answer = service.p99_of_workloads(failed(tables, tables.runs["run_id"]))
    assert answer.claims == () and answer.runs == len(tables.runs)
    assert dict(answer.failed)["no_foreign_load"] == len(tables.runs)


def test_p99_is_a_median_over_runs_with_its_interval_the_fastest_workload_first():
    answer = service.p99_of_workloads(measured())
    assert [claim.subject.workload for claim in answer.claims] == ["repeated_get", "unique_put"]
    first = answer.claims[0]
    assert (first.subject, first.unit, first.runs) == (Place("repeated_get", 4, 4000.0, "sample"), "us", 5)
    assert first.interval[0] < first.estimate < first.interval[1] and answer.runs == 10


def test_of_each_combination_the_highest_rate_held_and_the_lowest_that_was_not():
    offered, *combinations = service.rates_held(measured()).claims
    assert offered.estimate == 16_000
    assert {
        (claim.subject.workload, claim.estimate, claim.ends, claim.word, claim.rule) for claim in combinations
    } == {
        (workload, 4000.0, (4000.0, 16_000.0), service.MET_ITS_LIMIT, HELD)
        for workload in ("unique_put", "repeated_get")
    }


def test_a_combination_that_held_everything_has_no_limit_and_one_that_held_nothing_no_estimate():
    _, *all_held = service.rates_held(measured(rates=(1000.0,))).claims
    assert {(claim.word, claim.ends) for claim in all_held} == {(service.HELD_EVERY, (1000.0, math.inf))}
    _, *none_held = service.rates_held(measured(rates=(16_000.0,))).claims
    assert all(math.isnan(claim.estimate) and claim.ends[1] == 16_000 for claim in none_held)


def test_repeated_keys_that_take_half_as_long_are_faster_by_that_much():
    tables = slower(measured(rates=(1000.0,), workloads=("unique_put", "repeated_put")), 0.5, "repeated_put")
    (claim,) = service.repeated_against_unique(tables).claims
    assert (claim.baseline, claim.variant, claim.word, claim.sides) == (
        "unique_put",
        "repeated_put",
        "faster",
        (5, 5),
    )
    assert (
        claim.estimate == pytest.approx(0.5, rel=0.2)
        and claim.interval[0] < claim.estimate < claim.interval[1] < 1
    )


def test_the_first_of_the_comparisons_over_connections_is_the_largest_that_is_decided():
    tables = sample_tables(profiled=False, repeats=5, rates=(1000.0,), connections=(1, 4))
    on_four = tables.runs.loc[
        (tables.runs["connections"] == 4) & (tables.runs["workload"] == "unique_put"), "run_id"
    ]
    points = tables.percentiles
    tables = replace(
        tables,
        runs=tables.runs.assign(experiment="reproduce"),
        percentiles=points.assign(
            latency_us=np.where(
                points["run_id"].isin(on_four), 5 * points["latency_us"], points["latency_us"]
            )
        ),
    )
    first, *others = service.more_connections(tables).claims
    assert (first.subject.workload, first.word, first.baseline, first.variant) == (
        "unique_put",
        "slower",
        "1",
        "4",
    ) and first.estimate > 3
    assert len(others) == 1


def test_waiting_is_response_over_service_time_of_the_configuration_that_waits_most():
    tables = measured(rates=(1000.0,))
    put = tables.percentiles["run_id"].isin(
        tables.runs.loc[tables.runs["workload"] == "unique_put", "run_id"]
    )
    waited = put & (tables.percentiles["latency_kind"] == "response")
    tables = replace(
        tables,
        percentiles=tables.percentiles.assign(
            latency_us=tables.percentiles["latency_us"].where(~waited, 50 * tables.percentiles["latency_us"])
        ),
    )
    (claim,) = service.waiting(tables).claims
    assert (
        claim.subject == Place("unique_put", 4, 1000.0)
        and claim.estimate == pytest.approx(claim.ends[1] / claim.ends[0], rel=0.2)
        and claim.estimate > 25
    )
    kinds = tables.percentiles[tables.percentiles["percentile"] == 99].pivot_table(
        index="run_id", columns="latency_kind", values="latency_us"
    )
    of_runs = (kinds["response"] / kinds["service"]).loc[sorted(set(tables.percentiles["run_id"][put]))]
    assert claim.estimate == pytest.approx(of_runs.median()), "of the runs' own ratios"
    low, high = claim.interval or claim.extent
    assert low <= claim.estimate <= high and claim.chosen_from == 2
    assert (
        service.waiting(measured(rates=(1000.0,))) is None
        or service.waiting(measured(rates=(1000.0,))).claims[0].estimate < 2
    )
