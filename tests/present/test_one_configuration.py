"""Runs that are no repeats of one another share no median, whoever asks: each rule is asked with a second
configuration planted, the shorter window of another preset."""

from dataclasses import replace

import pandas as pd
import pytest
from sample import keep, repeated, sample_tables

from kvstudy.analyse.answers import profiles, ruler, service
from kvstudy.analyse.configuration import each_configuration, why_not_repeats
from kvstudy.analyse.replication.measured import Measured
from kvstudy.analyse.replication.rules import RULES
from kvstudy.present import findings, summary
from kvstudy.present import ruler as ruler_page
from kvstudy.present.answers import RULER
from kvstudy.present.claims import unsure
from kvstudy.present.figures import stacks as stacks_drawn


def measured(experiment="sample", workload="put", rate=2000.0, **changes):
    found = sample_tables(
        rates=(rate,), connections=(4,), workloads=(workload,), repeats=5, profiled=False, capacity_rps=1e9
    )
    return replace(found, runs=found.runs.assign(experiment=experiment, **changes))


def with_another(tables, **changes):
    """``tables`` and the same runs once more, with a window of 3 s and half of every latency and rate."""
    runs = tables.runs.assign(
        run_id="quick-" + tables.runs["run_id"],
        duration_s=5.0,
        achieved_rate_rps=tables.runs["achieved_rate_rps"] / 2,
        **changes,
    )
    points = tables.percentiles.assign(
        run_id="quick-" + tables.percentiles["run_id"], latency_us=tables.percentiles["latency_us"] / 2
    )
    return replace(
        tables,
        runs=pd.concat([tables.runs, runs], ignore_index=True),
        percentiles=pd.concat([tables.percentiles, points], ignore_index=True),
    )


def test_the_parts_that_share_a_median_are_told_apart_by_what_differs():
    assert why_not_repeats(measured().runs) == "" and [
        told for told, _ in each_configuration(measured().runs)
    ] == [""]
    parts = each_configuration(with_another(measured()).runs)
    assert sorted(told for told, _ in parts) == ["duration_s 5.0", "duration_s 8.0"] and [
        len(part) for _, part in parts
    ] == [5, 5]
    assert (
        "2 configurations share no median" in why_not_repeats(with_another(measured()).runs)
        and each_configuration(measured().runs.head(0)) == []
    )


@pytest.mark.parametrize(
    ("ask", "experiment"), [(service.p99_of_workloads, "sample"), (ruler.empty_server, "instrument")]
)
def test_each_configuration_has_a_claim_of_its_own(ask, experiment):
    claims = ask(with_another(measured(experiment))).claims
    assert {claim.runs for claim in claims} == {5} and {claim.variant for claim in claims} == {
        "duration_s 5.0",
        "duration_s 8.0",
    }
    low, high = sorted(claim.estimate for claim in claims)
    assert high == pytest.approx(2 * low), "neither is a median of both"


def test_each_of_them_is_told_with_what_tells_it_apart():
    assert "| put (duration_s 5.0) |" in findings.render(with_another(measured())).data
    assert "(duration_s 5.0)" in findings.render(with_another(measured("instrument")), RULER).data


def test_of_a_stall_measured_in_two_windows_nothing_is_told():
    loops = measured("stall", closed_loop=True)
    loops = replace(
        loops,
        runs=loops.runs.assign(run_id="loop-" + loops.runs["run_id"]),
        percentiles=loops.percentiles.assign(run_id="loop-" + loops.percentiles["run_id"]),
    )
    both = measured("stall")
    both = replace(
        both,
        runs=pd.concat([both.runs, loops.runs], ignore_index=True),
        percentiles=pd.concat([both.percentiles, loops.percentiles], ignore_index=True),
    )
    assert len(ruler.stall(both).claims) == 3
    answer = ruler.stall(with_another(both))
    assert (
        answer.claims == ()
        and "share no median" in answer.why
        and "share no median" in findings.render(with_another(both), RULER).data
    )
    assert ruler.stall(measured("stall")).claims == (), (
        "a side that is missing is no question that nobody asked"
    )


@pytest.mark.parametrize(
    "claim", ["r2-put-2000-held", "r2-put-2000-stdev", "r2-put-2000-p999", "r1-heat-gaps"]
)
def test_a_rule_about_a_report_decides_nothing_of_two_configurations(claim):
    tables = measured("report-2")
    rule = RULES[claim].measure
    alone = rule(tables)
    assert alone is None or unsure(alone) == ""
    both = rule(with_another(tables))
    assert both is None or "share no median" in unsure(both)
    assert claim == "r2-put-2000-p999" or both is not None


def test_two_builds_on_one_side_make_a_comparison_that_decides_nothing():
    pool = measured("report-3", rate=20000.0, variant="handler=workers")
    both = replace(
        pool,
        runs=pd.concat(
            [pool.runs, pool.runs.assign(run_id="one-" + pool.runs["run_id"], variant="handler=selector")],
            ignore_index=True,
        ),
        percentiles=pd.concat(
            [pool.percentiles, pool.percentiles.assign(run_id="one-" + pool.percentiles["run_id"])],
            ignore_index=True,
        ),
    )
    rule = RULES["r3-pool-faster"].measure
    assert unsure(rule(both)) == "" and rule(both).fewest == 5
    assert "share no median" in unsure(rule(with_another(both)))


def test_a_median_of_three_runs_a_side_decides_nothing_not_even_that_nothing_changed():
    assert unsure(Measured(1.0, 0.99, 1.01, 6, fewest=3)).startswith("3 runs a side")


def test_the_rates_held_by_two_windows_are_two_rows():
    rows = summary.held(with_another(measured()))
    assert len(rows) == 2 and set(rows["highest rate held"]) == {"2\u202f000 r/s", summary.words.MISSING}


def test_profiles_of_two_windows_are_two_claims_and_two_bars():
    profiles_of_one = repeated(keep(sample_tables(workloads=("put",)), lambda run: run.profiled), 5)
    quick = profiles_of_one.runs.assign(run_id="quick-" + profiles_of_one.runs["run_id"], duration_s=5.0)
    stacks = profiles_of_one.stacks.assign(run_id="quick-" + profiles_of_one.stacks["run_id"])
    both = replace(
        profiles_of_one,
        runs=pd.concat([profiles_of_one.runs, quick], ignore_index=True),
        stacks=pd.concat([profiles_of_one.stacks, stacks], ignore_index=True),
    )
    shares = profiles.shares(both)
    claims = profiles.network_and_store(shares).claims
    assert {claim.runs for claim in claims} == {5}
    assert {claim.variant for claim in claims} == {"duration_s 5.0", "duration_s 8.0"}
    bars = {name for trace in stacks_drawn.subsystem_shares(shares, "workload").data for name in trace.y}
    assert bars == {"put, duration_s 5.0", "put, duration_s 8.0"}


def test_a_script_sends_what_its_slowest_configuration_does():
    scripts = measured("workloads", closed_loop=True, server="empty", achieved_rate_rps=100_000.0)
    assert "50\u202f000 r/s with put" in ruler_page.script_limit(with_another(scripts), scripts).data
