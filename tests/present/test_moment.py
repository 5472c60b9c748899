"""A part of a run and what ran then: everything that the page needs is in the fragment."""

import gzip
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kvstudy.analyse.tables import REFERENCE_ALONE, study_tables
from kvstudy.present import moment
from kvstudy.project import EXPORT_VARIABLE
from kvstudy.record.heatmap import BLOCK_S, TimedSamples

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.append(str(CHECKOUT / "tests" / "analyse"))

from run_maker import START_EPOCH_S, RunMaker
from sample import finer


def stored(html: str) -> dict:
    return json.loads(re.search(r'class="runs">(.*?)</script>', html, re.DOTALL)[1])


@pytest.fixture(scope="module")
def tables():
    return study_tables(experiment="reproduce", progress=False, places=REFERENCE_ALONE)


@pytest.fixture(scope="module")
def runs(tables):
    worst = tables.runs.loc[~tables.runs["profiled"], "run_id"].iloc[-1]
    return stored(moment.shown(tables, worst).data)["runs"]


def test_every_sample_of_a_profiled_run_has_a_time_and_a_stack_of_named_frames(runs):
    profile = runs[0]["profile"]
    assert len(profile["block"]) == len(profile["leaf"]) > 1000
    assert all(parent < at for at, (parent, _, _) in enumerate(profile["nodes"]))
    assert {name for _, name, _ in profile["nodes"]} == set(range(len(profile["names"])))
    last = profile["begin_s"] + BLOCK_S * (max(profile["block"]) + 1)
    assert -1 < profile["begin_s"] < 1 and runs[0]["end_s"] - 1 < last < runs[0]["end_s"] + 1


def test_a_run_without_samples_says_so_and_has_its_slow_answers(runs):
    assert "no CPU samples" in runs[-1]["why"] and "profile" not in runs[-1]
    assert runs[-1]["answers"] and all(len(answer) == 4 for answer in runs[-1]["answers"])


def test_all_answers_that_were_kept_can_be_listed_and_the_chart_says_how_many_it_draws(tables):
    worst = tables.runs.loc[~tables.runs["profiled"], "run_id"].iloc[-1]
    run = tables.only([worst])
    known = run.slowest
    many = pd.concat([known] * (6000 // len(known) + 1), ignore_index=True).head(6000)
    (shown,) = stored(moment.shown(replace(run, slowest=many), worst).data)["runs"]
    assert len(shown["answers"]) == 6000
    assert shown["answers"] == sorted(shown["answers"], key=lambda answer: answer[0])
    told = shown["figure"]["layout"]["meta"]["drawn"].replace("\u202f", " ")
    assert "each dot is one of the 2 000 slowest of 6 000 slow answers, at the moment" in told
    (dots,) = [trace for trace in shown["figure"]["data"] if trace.get("name") == "slow answers"]
    assert len(dots["text"]) == 2000
    assert len(json.dumps(shown["answers"], separators=(",", ":"))) < 35 * 6000


def test_a_profiled_run_of_the_reference_says_that_its_slow_answers_were_not_kept(runs):
    assert not runs[0]["answers"] and runs[-1]["unkept"] == ""
    assert runs[0]["unkept"].startswith(
        "Slow answers are not kept for profiled runs of the reference; your own runs have them."
    )


def test_a_chart_says_how_wide_its_columns_are(runs):
    drawn = [run["figure"]["layout"]["meta"]["drawn"] for run in runs]
    assert "Each column is one second. " in drawn[0]
    assert "Each column is one second; each dot is a slow answer" in drawn[-1]


def test_events_of_the_measured_window_are_on_its_clock(runs):
    for run in runs:
        assert all(start + ms / 1000 >= 0 and start <= run["end_s"] for _, start, ms in run["events"])
    assert any(run["events"] for run in runs)


def test_a_second_of_too_few_answers_for_a_percentile_has_none(tables):
    worst = tables.runs.loc[~tables.runs["profiled"], "run_id"].iloc[-1]
    run = tables.only([worst])
    run.intervals.loc[run.intervals["second"] == run.intervals["second"].min(), "p99_us"] = np.nan
    (shown,) = [one for one in stored(moment.shown(run, worst).data)["runs"] if one["id"] == worst]
    assert shown["intervals"][0][2] is None and shown["intervals"][0][3] > 0
    assert all(second[2] > 0 for second in shown["intervals"][1:]) and shown["step_s"] == 1


def test_a_run_of_shorter_intervals_has_them_to_choose_from(tables):
    worst = tables.runs.loc[~tables.runs["profiled"], "run_id"].iloc[-1]
    before = tables.only([worst])
    (was,) = [one for one in stored(moment.shown(before, worst).data)["runs"] if one["id"] == worst]
    (run,) = [one for one in stored(moment.shown(finer(before), worst).data)["runs"] if one["id"] == worst]
    assert run["step_s"] == 0.25 and len(run["intervals"]) >= 4 * (len(was["intervals"]) - 1)
    assert [row[0] for row in run["intervals"][:5]] == [0, 0.25, 0.5, 0.75, 1]
    assert sum(row[1] for row in run["intervals"]) == sum(row[1] for row in was["intervals"])
    assert (
        run["end_s"] <= was["end_s"] and "Each column is 250 ms" in run["figure"]["layout"]["meta"]["drawn"]
    )


def test_what_ran_after_the_last_answer_is_shown_to_the_end_of_the_window(tables):
    worst = tables.runs.loc[~tables.runs["profiled"], "run_id"].iloc[-1]
    run = tables.only([worst])
    (row,) = run.runs[run.runs["run_id"] == worst].itertuples()
    window_s = row.duration_s - row.warm_up_s
    late = run.events.iloc[:1].assign(run_id=worst, kind="flush", start_s=window_s - 0.2, duration_ms=50.0)
    silent = replace(
        run,
        intervals=run.intervals[run.intervals["start_s"] < window_s / 2],
        events=pd.concat([run.events, late], ignore_index=True),
    )
    (shown,) = [one for one in stored(moment.shown(silent, worst).data)["runs"] if one["id"] == worst]
    assert shown["figure"]["layout"]["xaxis"]["range"] == [0, window_s]
    assert shown["end_s"] == window_s and ["flush", window_s - 0.2, 50.0] in shown["events"]


def test_stacks_become_one_tree():
    samples = TimedSamples(0.0, np.array([0, 0, 3]), np.array([0, 1, 0]), ["a_[j];b", "a_[0];c::d"])
    profile = moment._profile(samples, 0.5)
    assert profile["names"] == ["a", "b", "c::d"]
    assert profile["nodes"] == [[-1, 0, 1], [0, 1, 3], [0, 2, 4]]
    assert profile["leaf"] == [1, 2, 1] and profile["block"] == [0, 0, 3]


@pytest.mark.parametrize("with_worst", [False, True])
def test_as_many_runs_are_there_to_choose_from_as_fit_with_the_worst_one_or_without(
    tables, monkeypatch, with_worst
):
    profiled = list(tables.runs.loc[tables.runs["profiled"], "run_id"])[: moment.RUNS_MAX]
    worst = tables.runs.loc[~tables.runs["profiled"], "run_id"].iloc[-1] if with_worst else None
    monkeypatch.setattr(moment, "_profiled", lambda _tables: profiled)
    assert len(profiled) == len(stored(moment.shown(tables, worst).data)["runs"]) == moment.RUNS_MAX


def test_without_a_profiled_run_there_is_a_line_instead():
    stall = study_tables(experiment="stall", progress=False, places=REFERENCE_ALONE)
    assert "No profiled run" in moment.shown(stall).data


def test_a_notebook_carries_the_script_and_an_exported_page_does_not(tables, monkeypatch):
    one = tables.select(profiled=True)
    one = one.only(one.runs["run_id"].head(1))
    assert "window.Plotly" in moment.shown(one).data
    monkeypatch.setenv(EXPORT_VARIABLE, "1")
    assert "window.Plotly" not in moment.shown(one).data


def test_samples_of_a_host_two_seconds_ahead_lie_where_its_events_lie(tmp_path):
    """Events were moved to the run's clock when the run was sealed; the heat map has the host's own."""
    page = sorted((CHECKOUT / "data" / "reference").glob("reproduce/*-profiled/cpu.heatmap.html.gz"))[0]
    by_host_ms = round(1000 * (START_EPOCH_S + 0.5 + 2))
    samples = gzip.decompress(page.read_bytes()).decode()
    samples = re.sub(r"let startMs = \d+;", f"let startMs = {by_host_ms};", samples)
    clock = {"a": {"offset_us": -2_000_000.0, "bound_us": 40.0, "round_trip_us": 40.0}}
    machine = {"clocks": {"reference": "b", "before": clock, "after": clock}}
    flush = {"kind": "flush", "start_utc": "2026-11-20T20:42:25.500Z", "duration_ms": 90, "attributes": {}}
    RunMaker(tmp_path / "raw")(
        experiment="reproduce",
        profile=["cpu"],
        hosts={"service": "a", "generators": ["b"]},
        events=[flush],
        stacks={"cpu": "a;b 3\n"},
        more={"cpu.heatmap.html": samples, "machine.json": json.dumps(machine)},
    )
    found = study_tables(tmp_path, experiment="reproduce", progress=False)
    (run,) = stored(moment.shown(found).data)["runs"]
    (start_s,) = [start_s for kind, start_s, _ in run["events"] if kind == "flush"]
    assert run["profile"]["begin_s"] == start_s == 0.5
