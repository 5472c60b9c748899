"""Whether what a page expected came true."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sample import empty_tables, failed, sample_tables

from kvstudy.analyse.configuration import comparisons
from kvstudy.present import expected

RATES = (1000.0, 2000.0)


def at_two_rates(factor: float, repeats=5, rates=RATES):
    """One workload whose latencies at the higher rate are about ``factor`` times those at the lower."""
    found = sample_tables(
        rates=rates, connections=(4,), workloads=("unique_put",), repeats=repeats, profiled=False
    )
    scale = found.percentiles["run_id"].map(
        dict(
            zip(
                found.runs["run_id"],
                np.where(found.runs["offered_rate_rps"] == rates[1], factor, 1.0),
                strict=True,
            )
        )
    )
    return replace(
        found, percentiles=found.percentiles.assign(latency_us=found.percentiles["latency_us"] * scale)
    )


@pytest.mark.parametrize(
    ("factor", "repeats", "verdict"),
    [
        (1.0, 5, "it held, as far as it was tested."),
        (20.0, 5, "it did not hold."),
        (1.8, 5, "cannot tell."),
        (20.0, 2, "cannot tell."),
    ],
)
def test_neighbouring_rates_lie_close_together_or_not_or_nobody_can_tell(factor, repeats, verdict):
    text = expected.neighbouring_rates(at_two_rates(factor, repeats)).data
    assert text.startswith(f"**Against the Expectation:** {verdict} Of 1 pair of neighbouring rates")
    assert ("Furthest apart: unique_put, 4 connections, p99" in text) == ("did not" in verdict)
    assert ("No offered rate was past a saturation point" in text) == (repeats >= 5)


def test_an_interval_that_is_wider_than_in_the_tables_says_why():
    assert "wider" not in expected.neighbouring_rates(at_two_rates(20.0)).data, "one pair alone is not"
    three = sample_tables(
        rates=(1000.0, 2000.0, 4000.0),
        connections=(4,),
        workloads=("unique_put",),
        repeats=5,
        profiled=False,
    )
    scale = three.percentiles["run_id"].map(three.runs.set_index("run_id")["offered_rate_rps"] / 50)
    three = replace(
        three, percentiles=three.percentiles.assign(latency_us=three.percentiles["latency_us"] * scale**4)
    )
    text = expected.neighbouring_rates(three).data
    assert re.search(r"ratio [\d.]+ × \[.*\] \(wider than by itself: all pairs together at 95 %\)\.", text), (
        text
    )


def test_rates_that_lie_close_together_by_their_survivors_are_not_said_to():
    tables = at_two_rates(1.0, repeats=8)
    lost = tables.runs.loc[tables.runs["offered_rate_rps"] == RATES[1], "run_id"].head(3)
    assert "it held" in expected.neighbouring_rates(tables).data
    assert (
        "cannot tell"
        in expected.neighbouring_rates(failed(tables, lost, "no_errors", excluded="service")).data
    )


def test_what_lies_past_the_saturation_point_is_called_no_claim():
    text = expected.neighbouring_rates(at_two_rates(1.0, rates=(1000.0, 16000.0))).data
    assert (
        "nothing can be told" in text
        and "1 of 1 combination of workload, connections and options met a rate that they did not hold"
        in text
    )


def test_from_three_runs_at_a_rate_nobody_can_tell_whether_it_was_too_much():
    text = expected.neighbouring_rates(at_two_rates(1.0, repeats=3, rates=(1000.0, 16000.0))).data
    assert "Cannot tell whether an offered rate was past a saturation point: fewer than 5 runs" in text
    assert "did not hold" not in text


def test_where_no_run_says_whether_its_rate_was_held_no_rate_is_said_to_be_below_a_saturation_point():
    tables = at_two_rates(1.0)
    for found in (failed(tables, tables.runs["run_id"], "answers_expected"), empty_tables()):
        text = expected.neighbouring_rates(found).data
        assert "past a saturation point: no run says whether its rate was held." in text
        assert "No offered rate" not in text


def test_without_runs_nothing_is_said_to_have_held():
    assert "nothing can be told" in expected.neighbouring_rates(empty_tables()).data


def test_where_no_option_was_varied_no_comparison_is_said_to_lack_runs():
    text = expected.mostly_undecided(comparisons(empty_tables(), "label", "a", "b")).data
    assert "no option was varied here" in text and "runs a side" not in text


def test_most_changes_are_undecided_or_not():
    rows = comparisons(at_two_rates(20.0), "offered_rate_rps", *RATES)
    assert (rows["word"] == "slower").all()
    assert "it did not hold" in expected.mostly_undecided(rows).data
    assert "it held" in expected.mostly_undecided(rows.assign(word="cannot tell")).data
    assert "none could be decided" in expected.mostly_undecided(rows.assign(runs_after=2)).data


def test_the_same_is_no_change_though_it_is_decided():
    rows = comparisons(at_two_rates(20.0), "offered_rate_rps", *RATES).assign(word="the same")
    text = expected.mostly_undecided(rows).data
    assert "it held" in text and "0 show a difference." in text


def test_of_duets_the_launches_must_be_enough_for_a_word():
    rows = comparisons(at_two_rates(20.0), "offered_rate_rps", *RATES).assign(by="duet")
    text = expected.mostly_undecided(rows).data
    assert "no comparison of options has 5 runs a side or 6 launches of a duet" in text
    text = expected.mostly_undecided(rows.assign(runs_before=6, runs_after=6)).data
    assert "with 5 runs a side or 6 launches of a duet or more" in text and "it did not hold" in text


def seen(experiment: str, latency_us: float, name="", repeats=6, **changes):
    """Runs of one workload at 2 000/s, each of whose percentiles is about ``latency_us``."""
    found = sample_tables(
        rates=(2000.0,), connections=(4,), workloads=("get",), repeats=repeats, profiled=False
    )
    noise = dict(zip(found.runs["run_id"], np.linspace(0.98, 1.02, repeats), strict=True))
    return replace(
        found,
        runs=found.runs.assign(experiment=experiment, run_id=name + found.runs["run_id"], **changes),
        percentiles=found.percentiles.assign(
            latency_us=latency_us * found.percentiles["run_id"].map(noise),
            run_id=name + found.percentiles["run_id"],
        ),
        validity=empty_tables().validity,
    )


def joined(one, *others):
    frames = {
        name: pd.concat([getattr(part, name) for part in (one, *others)], ignore_index=True)
        for name in ("runs", "percentiles")
    }
    return replace(one, **frames)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (seen("instrument", 20), "a server that does nothing at 2 000 r/s, p50 20.0 µs: it held"),
        (seen("instrument", 300), "p50 300 µs: it did not hold"),
        (seen("instrument", 20, repeats=3), "p50 20.0 µs: cannot tell"),
        (
            joined(seen("stall", 900_000), seen("stall", 60, "loop-", closed_loop=True)),
            "p99 900 ms from the due time, 60.0 µs in a closed loop: it held",
        ),
        (
            joined(seen("stall", 70), seen("stall", 60, "loop-", closed_loop=True)),
            "p99 70.0 µs from the due time, 60.0 µs in a closed loop: it did not hold",
        ),
        (
            joined(seen("noise", 50, variant="a"), seen("noise", 50, "b-", variant="b")),
            "0 of 4 comparisons called different: it held",
        ),
        (
            joined(seen("noise", 50, variant="a"), seen("noise", 500, "b-", variant="b")),
            "3 of 4 comparisons called different: it did not hold",
        ),
        (empty_tables(), "p50 not measured: cannot tell"),
    ],
)
def test_page_01_says_whether_its_ruler_did_what_was_expected(part, said):
    told = expected.ruler_is_true(part).data.replace("\u202f", " ")
    assert said in told, told
    assert told.count(": cannot tell.") == (3 if "cannot tell" in said else 2)


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        ([(90, 110, "reproduced")], "it held, as far as it was tested. Of 1 published"),
        ([(90, 110, "reproduced"), (300, np.nan, "not reproduced")], "it did not hold. Of 2 published"),
        ([(90, 110, "reproduced"), (90, 300, "cannot tell")], "cannot tell. Of 2 published"),
        ([(300, 400, "mistaken")], "cannot tell. Of 0 published"),
        ([], "cannot tell. Of 0 published"),
    ],
)
def test_page_08_says_whether_published_rates_and_latencies_stay_within_a_factor_of_two(ours, said):
    judged = pd.DataFrame(ours, columns=["low", "high", "verdict"]).assign(
        quantity="p99_us", published=100.0, runs=5
    )
    told = expected.published_stay_near(judged).data
    assert f"**Against the Expectation:** {said} rates and latencies" in told, told
    assert ("1 of 1 claim falls by" in told) == (len(ours) == 1 and ours[0][2] == "mistaken")
