"""Findings rest on valid runs; where there is none, they say so."""

from dataclasses import replace

from sample import empty_tables, sample_tables

from kvstudy.present import answers, findings


def lines(tables, rules=findings.RULES):
    return findings.told(tables, rules).data


def invalid(tables, check="no_foreign_load"):
    failed = tables.validity.drop_duplicates("run_id").assign(check=check, verdict="FAIL")
    return replace(tables, runs=tables.runs.assign(verdict="FAIL"), validity=failed)


def test_only_invalid_runs_give_no_number_but_the_checks_that_failed():
    text = lines(invalid(sample_tables(profiled=False)))
    assert text.count("cannot tell: none of its runs counts; checks failed: no_foreign_load") == 3
    assert "µs" not in text and "r/s" not in text


def test_a_question_that_was_not_measured_has_no_line():
    assert lines(empty_tables(), (*answers.SERVICE, *answers.RULER)) == "No valid run supports a finding yet. Measure with `make reproduce`."


def test_waiting_is_told_of_rates_that_were_held_alone():
    text = next(line for line in lines(sample_tables(profiled=False, repeats=5)).splitlines() if "Waiting" in line or "p99 response" in line)
    assert "16\u202f000 r/s" not in text


def test_the_highest_rate_held_is_below_the_saturation_point():
    text = lines(sample_tables(profiled=False, repeats=5, connections=(4,)))
    assert "**Highest rate held:** 4\u202f000 r/s" in text and "at 16\u202f000 r/s it did not keep up" in text


def test_a_rate_whose_runs_were_disturbed_is_not_called_lost():
    whole = sample_tables(profiled=False, repeats=5, connections=(4,), rates=(1000.0, 4000.0))
    disturbed = whole.runs["offered_rate_rps"] == 4000.0
    failed = replace(whole, runs=whole.runs.assign(verdict=["FAIL" if bad else "PASS" for bad in disturbed], achieved_rate_rps=whole.runs["achieved_rate_rps"].where(~disturbed, 10.0)),
                     validity=whole.validity.assign(check="no_foreign_load", verdict=["FAIL" if run in set(whole.runs.loc[disturbed, "run_id"]) else "PASS" for run in whole.validity["run_id"]]))  # fmt: skip
    assert "no offered rate saturated it" in lines(failed)


def test_experiments_about_the_ruler_tell_nothing_about_the_service():
    ruler = sample_tables(profiled=False)
    assert "Highest rate" not in lines(replace(ruler, runs=ruler.runs.assign(experiment="instrument")))


def test_the_empty_server_tells_the_rulers_own_latency():
    ruler = sample_tables(profiled=False, repeats=5, rates=(1000.0,), connections=(16,), workloads=("get",))
    text = lines(replace(ruler, runs=ruler.runs.assign(experiment="instrument")), answers.RULER)
    assert text.startswith("- **The ruler on a server that does nothing:** the median response time is ") and "(5 runs" in text
