"""Findings rest on valid runs; where there is none, they say so."""

from dataclasses import replace

import pandas as pd
from sample import empty_tables, sample_tables

from kvstudy.present import answers, findings


def lines(tables, rules=findings.RULES):
    return findings.render(tables, rules).data


def invalid(tables, check="no_foreign_load", observed="a lot"):
    failed = tables.validity.drop_duplicates("run_id").assign(check=check, verdict="FAIL", observed=observed)
    return replace(tables, runs=tables.runs.assign(verdict="FAIL", excluded="outside"), validity=failed)


def test_only_invalid_runs_give_no_number_but_the_checks_that_failed():
    text = lines(invalid(sample_tables(profiled=False)))
    assert text.count("| cannot tell: none of its runs counts; checks failed: no_foreign_load") == 3
    assert "µs" not in text and "r/s" not in text


def test_of_runs_that_did_not_complete_it_is_told_what_ended_them():
    died = invalid(sample_tables(profiled=False), "completed", "failed: service died during fill: exit 3: x")
    text = lines(died)
    assert text.count("checks failed: service died during fill (") == 3 and "completed" not in text


def test_a_question_that_was_not_measured_has_no_line():
    assert (
        lines(empty_tables(), (*answers.SERVICE, *answers.RULER))
        == "No valid run supports a finding yet. Measure with `make reproduce`."
    )


def test_waiting_is_told_of_rates_that_were_held_alone():
    told = [
        line
        for line in lines(sample_tables(profiled=False, repeats=5)).splitlines()
        if "Waiting" in line or "p99 response" in line
    ]
    assert told and not any("16\u202f000 r/s" in line for line in told)


def test_the_highest_rate_held_is_below_the_saturation_point():
    text = lines(sample_tables(profiled=False, repeats=5, connections=(4,)))
    assert "| the highest that was held | 4\u202f000 r/s |" in text
    assert "options that met a rate that was not held | 2 of 2 |" in text
    assert "| the lowest that was not: " in text and " | 16\u202f000 r/s |" in text


def test_a_rate_whose_runs_were_disturbed_is_not_called_lost():
    whole = sample_tables(profiled=False, repeats=5, connections=(4,), rates=(1000.0, 4000.0))
    disturbed = whole.runs["offered_rate_rps"] == 4000.0
    failed = replace(
        whole,
        runs=whole.runs.assign(
            verdict=["FAIL" if bad else "PASS" for bad in disturbed],
            achieved_rate_rps=whole.runs["achieved_rate_rps"].where(~disturbed, 10.0),
        ),
        validity=whole.validity.assign(
            check="no_foreign_load",
            verdict=[
                "FAIL" if run in set(whole.runs.loc[disturbed, "run_id"]) else "PASS"
                for run in whole.validity["run_id"]
            ],
        ),
    )
    assert (
        "2 combinations of workload, connections and options that held every rate offered "
        "| 2 of 2 |" in lines(failed)
    )


def test_the_rates_that_were_held_are_told_as_those_that_were_chosen_since_a_search_may_hold_more():
    chosen = sample_tables(
        profiled=False, repeats=5, connections=(4,), rates=(1000.0, 4000.0), workloads=("put",)
    )
    search = sample_tables(
        profiled=False, repeats=5, connections=(4,), rates=(28000.0,), workloads=("put",), capacity_rps=1e9
    )
    searched = search.runs.assign(
        experiment="report-1", search="{}", run_id=[f"trial-{n}" for n in range(len(search.runs))]
    )
    text = lines(replace(chosen, runs=pd.concat([chosen.runs, searched], ignore_index=True)))
    assert "| Rates chosen beforehand, at most 4\u202f000 r/s | 1 combination of" in text


def test_experiments_about_the_ruler_tell_nothing_about_the_service():
    ruler = sample_tables(profiled=False)
    assert "Rates chosen" not in lines(replace(ruler, runs=ruler.runs.assign(experiment="instrument")))


def test_the_empty_server_tells_the_rulers_own_latency():
    ruler = sample_tables(profiled=False, repeats=5, rates=(1000.0,), connections=(16,), workloads=("get",))
    text = lines(replace(ruler, runs=ruler.runs.assign(experiment="instrument")), answers.RULER)
    row = text.splitlines()[2]
    assert row.startswith("| The ruler on a server that does nothing | p50 at 1\u202f000 r/s | ")
    assert row.endswith(" | 5 runs | [01](01-instrument.ipynb) |")


def test_a_row_has_one_number_and_its_page_and_a_finding_of_one_run_says_run():
    for runs, said in ((1, "1 run"), (2, "2 runs")):
        told = findings.Finding("q", (findings.Row("a | b", "1 ms"),), "03-percentiles", runs)
        assert told.lines() == [f"| q | a \\| b | 1 ms |  | {said} | [03](03-percentiles.ipynb) |"]
