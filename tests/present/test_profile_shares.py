"""Published numbers beside ours: only what was measured at the rate, with the handler and of the whole that a
report speaks of is judged."""

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from sample import empty_tables, keep, sample_tables

from kvstudy.analyse import published, validity
from kvstudy.analyse.replication import verdicts
from kvstudy.analyse.replication.rules import RULES
from kvstudy.present import claims, words
from kvstudy.present.figures.published import published_spectra
from kvstudy.present.summary import profile_shares

FOLDER = Path(__file__).resolve().parents[2] / "data" / "published"


@pytest.fixture(scope="module")
def reports():
    return published.load(FOLDER)


def profiles_of(experiment, workload, rate, variant="", runs=1, verdict="PASS"):
    """Profiled runs whose stacks are a quarter in the store and a third reading the socket."""
    parts = [
        keep(
            sample_tables(seed=n, rates=(1000.0,), connections=(4,), workloads=(workload,), repeats=1),
            lambda run: run.profiled,
        )
        for n in range(runs)
    ]
    ids = [f"{experiment} {workload} {rate:g} {variant} {n}" for n in range(runs)]
    made = [
        part.runs.assign(
            run_id=run_id,
            experiment=experiment,
            variant=variant,
            offered_rate_rps=float(rate),
            verdict=verdict,
        )
        for run_id, part in zip(ids, parts, strict=True)
    ]
    stacks = [part.stacks.assign(run_id=run_id) for run_id, part in zip(ids, parts, strict=True)]
    return replace(
        empty_tables(), runs=pd.concat(made, ignore_index=True), stacks=pd.concat(stacks, ignore_index=True)
    )


def together(*parts):
    joined = {
        name: pd.concat([getattr(part, name) for part in parts], ignore_index=True)
        for name in ("runs", "percentiles", "stacks")
    }
    return replace(parts[0], **joined)


def shown(reports, tables, **wanted):
    rows = profile_shares(reports, tables)
    for name, value in wanted.items():
        rows = rows[rows[name] == value]
    return rows


def test_a_rate_without_a_valid_profile_is_not_measured_whatever_was_measured_at_another(reports):
    ours = together(
        profiles_of("report-2", "put", 2000), profiles_of("report-2", "put", 20000, verdict="FAIL")
    )
    rows = shown(reports, ours, report=2, method="PUT")
    assert set(rows.loc[rows["published at"] == "20\u202f000 r/s", "verdict"]) == {verdicts.NOT_MEASURED}
    assert set(rows.loc[rows["published at"] == "20\u202f000 r/s", "measured"]) == {"–"}
    assert verdicts.NOT_MEASURED not in set(rows.loc[rows["published at"] == "2\u202f000 r/s", "verdict"])


def test_a_report_that_is_not_profiled_here_is_judged_by_the_rates_on_both_sides_of_its_own(reports):
    low, high = profiles_of("report-2", "get", 2000, runs=3), profiles_of("report-2", "get", 20000, runs=3)
    for ours, verdict, at in (
        (low, "cannot tell", "2\u202f000 r/s"),
        (together(low, high), verdicts.REPRODUCED, "2\u202f000 r/s and 20\u202f000 r/s"),
    ):
        row = shown(reports, ours, report=1, method="GET", event="cpu", subsystem="store").iloc[0]
        assert (row["verdict"], row["measured at"]) == (verdict, at)
        measured = RULES["r1-get-alloc"].measure(ours)
        assert words.several([words.rate(rate) for rate in measured.at_rates_rps]) == at and (
            measured.word == "cannot tell"
        ) == (verdict == "cannot tell")


def test_shares_of_profiles_beside_which_the_service_lost_runs_decide_nothing(reports):
    """Those left are its better ones, whichever share they would have had."""
    rates = (2000, 20000)
    whole = together(*(profiles_of("report-2", "get", rate, runs=3) for rate in rates))
    lost = profiles_of("report-2", "get", 20000, variant="lost", verdict="FAIL")
    outside, service = (
        replace(lost, runs=lost.runs.assign(excluded=who)) for who in (validity.OUTSIDE, validity.SERVICE)
    )
    elsewhere = replace(service, runs=service.runs.assign(offered_rate_rps=64_000.0))
    # All of them at the nearest rate: one that is farther off is no stand-in.
    nearest = replace(service, runs=service.runs.assign(offered_rate_rps=10_000.0))
    for more, verdict, so_many in (
        (nearest, "cannot tell", 1),
        (outside, verdicts.REPRODUCED, 0),
        (elsewhere, verdicts.REPRODUCED, 0),
        (service, "cannot tell", 1),
    ):
        ours = together(whole, more)
        row = shown(reports, ours, report=1, method="GET", event="cpu", subsystem="store").iloc[0]
        assert (row["verdict"], row["lost"]) == (verdict, str(so_many))
        measured = RULES["r1-get-alloc"].measure(ours)
        assert measured.lost == so_many and (measured.bounds[1] == math.inf) == (so_many > 0)


def test_a_claim_beside_profiles_of_another_rate_decides_nothing(reports):
    judged = claims.judge(reports, profiles_of("report-2", "put", 2000, runs=2)).set_index("claim")
    assert (
        judged.loc["r1-put-network", "verdict"] == "cannot tell"
        and "at 2\u202f000 r/s"
        in claims.table(judged)["measured"].to_list()[list(judged.index).index("r1-put-network")]
    )


def test_the_parts_that_a_report_names_of_one_subsystem_are_judged_together(reports):
    row = shown(
        reports, profiles_of("report-2", "get", 8906), report=1, method="GET", event="cpu", subsystem="store"
    )
    assert (
        row["published"].to_list() == ["17.6 %"]
        and row["part"].iloc[0] == "lookup on disk 13 % and lookup in memory 4.6 %"
    )
    every = profile_shares(reports, empty_tables())
    assert len(every) == len(
        reports.profile_shares.groupby(
            ["report", "method", "offered_rate_rps", "stage", "event", "subsystem"]
        )
    )
    assert set(every["verdict"]) == {verdicts.NOT_MEASURED}


def test_a_stage_is_compared_with_its_own_handler_and_no_other(reports):
    selector = profiles_of("report-3", "put", 20000, "handler=selector")
    said = shown(reports, selector, report=3, event="cpu")["verdict"].to_list()
    assert said[0] != verdicts.NOT_MEASURED and said[1] == verdicts.NOT_MEASURED


def test_a_ratio_of_shares_has_the_interval_that_its_runs_leave(reports):
    rule = RULES["r2-put-alloc-grows"]
    one = rule.measure(together(profiles_of("report-2", "put", 2000), profiles_of("report-2", "put", 20000)))
    two = rule.measure(
        together(profiles_of("report-2", "put", 2000, runs=2), profiles_of("report-2", "put", 20000, runs=2))
    )
    assert one.low != one.low and one.runs == 2
    assert two.low < two.value < two.high and two.runs == 4
    assert claims.unsure(two) == "2 runs a side: not enough to be sure, 5 are needed"


def test_profiles_of_fewer_than_five_runs_decide_nothing(reports):
    for runs in (4, 5):
        ours = profiles_of("report-2", "get", 2000, runs=runs)
        judged = claims.judge(reports, ours).set_index("claim").loc["r2-get-2000-lookup"]
        for verdict in (
            judged["verdict"],
            shown(reports, ours, report=2, method="GET", event="cpu", subsystem="store")["verdict"].iloc[0],
        ):
            assert (verdict == "cannot tell") == (runs < 5)
        assert ("4 runs: not enough to be sure, 5 are needed" in judged["note"]) == (runs < 5)


def latencies_of(experiment, workload, rate, verdict="PASS", **columns):
    tables = sample_tables(
        rates=(float(rate),),
        connections=(1,),
        workloads=(workload,),
        repeats=2,
        capacity_rps=1e9,
        profiled=False,
    )
    ids = {run_id: f"{workload} {rate:g} {n}" for n, run_id in enumerate(tables.runs["run_id"])}
    runs = tables.runs.assign(
        run_id=tables.runs["run_id"].map(ids), experiment=experiment, verdict=verdict, **columns
    )
    return replace(
        tables,
        runs=runs,
        percentiles=tables.percentiles.assign(run_id=tables.percentiles["run_id"].map(ids)),
        validity=empty_tables().validity,
    )


def drawn_runs(figure):
    return {
        trace.hovertemplate.removesuffix("<extra></extra>").split("<br>")[-1]
        for trace in figure.data
        if trace.name == "measured"
    }


def test_a_printed_distribution_stands_beside_our_runs_at_the_nearest_rate_alone_and_the_rate_is_said(
    reports,
):
    ours = together(
        *(latencies_of("report-1", "put", rate) for rate in (1000, 10000, 28000)),
        latencies_of("report-1", "put", 11000, verdict="FAIL"),
    )
    figure = published_spectra(reports, ours, 1)
    assert drawn_runs(figure) == {"put 10000 0", "put 10000 1"}
    assert "PUT at 11\u202f250 r/s there, 10\u202f000 r/s here" in [
        heading.text for heading in figure.layout.annotations
    ]
    assert (
        "here at 10\u202f000 r/s (2 runs)" in figure.layout.meta["finding"]
        and "no valid run here" in figure.layout.meta["finding"]
    )


def test_each_published_rate_of_a_method_has_a_panel_of_its_own(reports):
    ours = together(*(latencies_of("report-2", "put", rate) for rate in (2000, 20000)))
    figure = published_spectra(reports, ours, 2)
    assert {"PUT at 2\u202f000 r/s", "PUT at 20\u202f000 r/s"} <= {
        heading.text for heading in figure.layout.annotations
    }
    assert drawn_runs(figure) == {"put 2000 0", "put 2000 1", "put 20000 0", "put 20000 1"}


def test_a_closed_loop_stands_beside_ours_of_the_same_workload_and_connections(reports):
    same, other = (
        latencies_of("report-5", workload, 1000, closed_loop=True) for workload in ("repeated_get", "mixed")
    )
    assert drawn_runs(published_spectra(reports, together(same, other), 5)) == {
        "repeated_get 1000 0",
        "repeated_get 1000 1",
    }
