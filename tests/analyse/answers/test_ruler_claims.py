"""What the study says of its ruler, as data."""

from dataclasses import replace

import pandas as pd
import pytest
from sample import empty_tables, sample_tables

from kvstudy.analyse.answers import ruler
from kvstudy.analyse.claim import CLOSED_LOOP
from kvstudy.analyse.options import SAME_THING


def of(experiment, prefix="", **changes):
    tables = sample_tables(profiled=False, repeats=6, rates=(1000.0,), connections=(4,), workloads=("get",))
    runs = tables.runs.assign(experiment=experiment, run_id=prefix + tables.runs["run_id"], **changes)
    return replace(
        tables,
        runs=runs,
        percentiles=tables.percentiles.assign(run_id=prefix + tables.percentiles["run_id"]),
        validity=empty_tables().validity,
    )


def together(one, other):
    return replace(
        one,
        **{
            name: pd.concat([getattr(one, name), getattr(other, name)], ignore_index=True)
            for name in ("runs", "percentiles")
        },
    )


@pytest.mark.parametrize(
    "ask",
    [
        ruler.empty_server,
        ruler.generators,
        ruler.beside_wrk2,
        ruler.stall,
        ruler.noise,
        ruler.profiling,
    ],
)
def test_what_nobody_measured_has_no_answer(ask):
    assert ask(empty_tables()) is None


def test_the_empty_server_has_a_median_at_each_rate():
    (claim,) = ruler.empty_server(of("instrument")).claims
    assert (claim.measure, claim.unit, claim.subject.offered_rate_rps, claim.runs) == ("p50", "us", 1000.0, 6)


def test_a_stall_has_three_medians_of_p99_one_of_them_without_a_rate():
    answer = ruler.stall(together(of("stall"), of("stall", "loop-", closed_loop=True)))
    assert {claim.variant: claim.subject.offered_rate_rps for claim in answer.claims} == {
        ruler.RESPONSE: 1000.0,
        ruler.SERVICE: 1000.0,
        ruler.CLOSED: CLOSED_LOOP,
    }
    assert answer.runs == 12


def test_the_same_thing_twice_is_compared_measure_by_measure_and_its_runs_count_once():
    answer = ruler.noise(
        together(of(SAME_THING, variant="heap=128m"), of(SAME_THING, "again-", variant="heap=131072k"))
    )
    assert {claim.measure for claim in answer.claims} == {
        "p50",
        "p99",
        "CPU per request",
    } and answer.runs == 12
    assert not any(claim.differs for claim in answer.claims)


def test_loadgen_is_compared_with_wrk_by_the_rate_that_they_achieve():
    loops = [
        of(
            "generators",
            name,
            generator=name,
            closed_loop=True,
            achieved_rate_rps=[rate + n for n in range(6)],
        )
        for name, rate in (("wrk", 1000), ("loadgen", 2000))
    ]
    (claim,) = ruler.generators(together(*loops)).claims
    assert (claim.baseline, claim.variant, claim.measure, claim.word) == (
        "wrk",
        "loadgen",
        "achieved rate",
        "faster",
    )
    assert claim.ends == (1002.5, 2002.5) and claim.estimate == pytest.approx(2002.5 / 1002.5)


def test_wrk2_is_compared_with_loadgen_at_each_rate_by_itself():
    sides = [
        of("wrk2", f"{name}-{rate:.0f}-", generator=name, offered_rate_rps=rate)
        for name in ("loadgen", "wrk2")
        for rate in (2000.0, 20_000.0)
    ]
    slow = sides[0].percentiles.assign(latency_us=sides[0].percentiles["latency_us"] * 40)
    sides[2:] = [
        replace(side, percentiles=slow.assign(run_id=side.percentiles["run_id"])) for side in sides[2:]
    ]
    answer = ruler.beside_wrk2(together(together(*sides[:2]), together(*sides[2:])))
    assert [claim.subject.offered_rate_rps for claim in answer.claims] == [2000.0, 20_000.0]
    for claim in answer.claims:
        assert (claim.baseline, claim.variant, claim.measure) == ("loadgen", "wrk2", "p50")
        assert claim.estimate == pytest.approx(40) and claim.word == "slower" and claim.runs == 12


def test_two_builds_of_loadgen_beside_one_wrk2_decide_nothing_and_it_is_said_why():
    sides = [
        of("wrk2", f"{program}-", generator=generator, generator_program=program)
        for generator, program in (("loadgen", "a"), ("loadgen", "b"), ("wrk2", "c"))
    ]
    answer = ruler.beside_wrk2(together(together(*sides[:2]), sides[2]))
    assert not answer.claims
    assert "2 configurations share no median" in answer.why and "generator_program" in answer.why
