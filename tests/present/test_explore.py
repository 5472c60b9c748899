"""Choosers and the views that follow them: the first choice, what follows from another, and what is left of
them where nobody can choose."""

import re
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from IPython.display import Markdown
from sample import empty_tables, failed, finer, sample_tables

from kvstudy.errors import KvstudyError
from kvstudy.present import explore, words
from kvstudy.present.page import PLOTLY_MIME
from kvstudy.project import EXPORT_VARIABLE

PAGE = Path(__file__).parents[2] / "notebooks" / "09-explore.ipynb"


class Place:
    """What IPython gives for a display that can be drawn anew."""

    def __init__(self):
        self.drawn = []

    def update(self, *shown, **_raw):
        self.drawn.append(shown[0])


@pytest.fixture
def places(monkeypatch):
    made = []

    def display(*shown, display_id, raw=False):
        made.append(Place())
        made[-1].update(*shown)
        return made[-1]

    monkeypatch.setattr(explore, "display", display)
    return made


@pytest.fixture(scope="module")
def choices():
    return explore.Choices(sample_tables())


@pytest.fixture
def at(choices):
    return explore.Explorer(choices, choices.first(None, None, None, 99.0))


def test_the_first_choice_is_a_latency_run_with_all_of_its_seconds(choices, at):
    now = at.choice
    assert now.variant == choices.variants("sample")[-1] and not now.run["profiled"]
    assert (now.start_s, now.stop_s) == choices.seconds("sample", now.run_id) == (0, 6)
    assert now.run_id in choices.runs("sample", now.variant)


def test_a_run_alone_says_its_experiment_and_variant(choices):
    run = choices.experiment_tables("sample").runs.iloc[0]
    now = choices.first(None, None, run["run_id"], 50.0)
    assert now.run_id == run["run_id"] and now.variant == explore.variants(now.tables.runs).iloc[0]


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        (
            "workload_args",
            ['{"value_bytes": 100}', '{"value_bytes": 4096}'],
            ["value 100 B", "value 4 KiB"],
        ),
        ("generator", ("loadgen", "wrk2"), ["loadgen", "wrk2"]),
        ("server", ("kv-service", "nginx"), ["kv-service", "nginx"]),
    ],
)
def test_two_sizes_of_values_are_two_variants_and_so_are_loadgen_and_wrk2(column, values, told):
    found = sample_tables(workloads=("repeated_get",), connections=(4,), rates=(1000.0,), repeats=4)
    given = found.runs["repeat"].le(2).map({True: values[0], False: values[1]})
    found = found.but(runs=found.runs.assign(**{column: given}))
    choices = explore.Choices(found)
    usual = f"repeated_get, 4 connections, {words.rate(1000.0)}, sample"
    assert choices.variants("sample") == [f"{usual}, {text}" for text in told]
    last = found.runs.loc[~found.runs["profiled"], "run_id"].iloc[-1]
    now = choices.first(None, None, last, 99.0)
    assert now.variant == f"{usual}, {told[1]}" and choices.runs("sample", now.variant)[1] == last
    assert set(now.percentiles["repeat"]) == {"3", "4"}, "others are no repeats of it"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("none", None, None), "no such experiment: none\n.*sample"),
        ((None, "none", None), "no such variant of sample: none"),
        ((None, None, "none"), "no such run: none"),
        (
            (pd.Series(["sample", "sample"]), None, None),
            "^not one experiment: 0 sample .*\n  experiment is a",
        ),
        ((None, ["none"], None), "not one variant: "),
        ((None, None, pd.Series(["one", "two"])), "not one run_id: "),
    ],
)
def test_what_is_not_there_is_told_in_a_line(choices, asked, message):
    with pytest.raises(KvstudyError, match=message):
        choices.first(*asked, 99.0)


def test_frames_are_of_the_chosen_run_and_seconds(at):
    at.choose(start_s=2, stop_s=4)
    now = at.choice
    assert set(now.seconds.loc[now.seconds["part"] == "part", "second"]) == {2, 3}
    assert now.slowest["due_s"].between(2, 4).all() and set(now.events["run_id"]) <= {now.run_id}
    assert set(now.part_and_rest["part"]) == {"part", "rest"}
    assert now.histogram().get_total_count() == now.seconds.query("part == 'part'")["count"].sum()
    assert set(now.percentiles["run_id"]) <= set(now.runs.query("variant == @now.variant")["run_id"])
    assert (now.by_rate["latency_us"] > 0).any() and set(now.stacks["event"]) <= {"cpu"}


def test_an_invalid_run_is_called_so_wherever_it_is_shown(monkeypatch):
    found = sample_tables(workloads=("repeated_get",), connections=(4,), rates=(1000.0,), repeats=2)
    latency = found.runs.loc[~found.runs["profiled"], "run_id"]
    choices = explore.Choices(failed(found, [latency.iloc[1]]))
    valid, invalid = (choices.first(None, None, run_id, 99.0) for run_id in latency.iloc[:2])
    assert valid.title.endswith("repeat 1") and invalid.title.endswith("repeat 2, INVALID")
    assert set(valid.percentiles["repeat"]) == {"1", "2, INVALID"}
    assert {"chosen", "chosen, INVALID"} <= set(valid.by_rate["chosen"])
    monkeypatch.setenv(EXPORT_VARIABLE, "1")
    assert (
        "INVALID: no_foreign_load: 30.00 %"
        in explore.Explorer(choices, invalid)._repr_mimebundle_()["text/plain"]
    )
    assert "INVALID" not in explore.Explorer(choices, valid)._repr_mimebundle_()["text/plain"]


def test_shorter_intervals_are_seconds_and_can_be_chosen_one_by_one():
    choices = explore.Choices(finer(sample_tables(repeats=1)))
    at = explore.Explorer(choices, choices.first(None, None, None, 99.0))
    assert (at.choice.start_s, at.choice.stop_s) == (0, 6)
    at.choose(start_s=1.25, stop_s=2)
    now = at.choice
    assert now.seconds["second"].tolist() == [0, 1, 2, 3, 4, 5]
    part = now.intervals.query("part == 'part'")
    assert part["start_s"].tolist() == [1.25, 1.5, 1.75] and set(part["length_s"]) == {0.25}
    assert now.histogram().get_total_count() == part["count"].sum() < now.seconds["count"].iloc[1]
    assert set(now.part_and_rest["part"]) == {"part", "rest"}


def test_another_choice_draws_every_view_anew_and_a_percentile_keeps_the_rest(at, places):
    at.show(lambda now: f"{now.run_id} {now.percentile:g}")
    before = at.choice
    at.choose(percentile=99.9)
    assert [shown.data for shown in places[0].drawn] == [f"{before.run_id} 99", f"{before.run_id} 99.9"]
    at.choose(start_s=1)
    at.choose(variant=explore.Choices(sample_tables()).variants("sample")[0])
    assert at.choice.variant != before.variant and at.choice.run_id != before.run_id
    assert (at.choice.percentile, at.choice.start_s) == (99.9, 0) and len(places[0].drawn) == 4


def test_a_view_that_fails_says_why_and_leaves_the_others_alone(at, places):
    at.show(lambda now: "fine" if now.percentile == 99 else 1 / 0)
    at.show(lambda now: f"{now.percentile:g}")
    at.choose(percentile=50.0)
    assert "ZeroDivisionError" in places[0].drawn[-1].data and places[1].drawn[-1].data == "50"


def test_a_figure_is_drawn_as_data_that_a_page_shows(at, places):
    import plotly.express as px

    at.show(lambda now: px.bar(now.seconds, x="second", y="at_us"))
    at.show(lambda now: now.slowest.head())
    assert PLOTLY_MIME in places[0].drawn[0] and "response_us" in places[1].drawn[0]


def test_a_figure_without_rows_says_so_in_place_of_axes_that_mean_nothing(at, places):
    import plotly.express as px

    at.show(lambda now: px.bar(now.seconds.head(0), x="second", y="at_us"))
    at.show(lambda now: px.bar(now.seconds, x="second", y="at_us"))
    empty, drawn = (place.drawn[0][PLOTLY_MIME]["layout"] for place in places)
    assert empty["annotations"][0]["text"].startswith("Nothing to draw")
    assert empty["xaxis"]["visible"] is False and empty["yaxis"]["visible"] is False
    assert "annotations" not in drawn and "visible" not in drawn["xaxis"]


def test_in_an_export_the_choosers_are_a_sentence_and_no_widget(at, monkeypatch):
    monkeypatch.setenv(EXPORT_VARIABLE, "1")
    bundle = at._repr_mimebundle_()
    assert set(bundle) == {"text/markdown", "text/plain"} and at.choice.run_id in bundle["text/markdown"]


def test_choosers_set_the_choice_and_those_below_them(at, choices, places, monkeypatch):
    monkeypatch.delenv(EXPORT_VARIABLE, raising=False)
    assert "application/vnd.jupyter.widget-view+json" in at._repr_mimebundle_()
    at.show(lambda now: now.variant)
    experiment, variant, run, percentile, seconds = at._choosers.children
    variant.value = choices.variants("sample")[0]
    assert at.choice.variant == variant.value and run.options == tuple(choices.runs("sample", variant.value))
    run.value = run.options[-1]
    percentile.value = 50.0
    seconds.value = (1, 3)
    now = at.choice
    assert (now.run_id, now.percentile, now.start_s, now.stop_s) == (run.options[-1], 50.0, 1, 3)
    assert experiment.value == "sample" and isinstance(places[0].drawn[-1], Markdown)
    assert len(places[0].drawn) == 5, "each choice draws once"
    for together, chosen in (((2, 2), (2, 3)), ((6, 6), (5, 6))):
        seconds.value = together
        assert (at.choice.start_s, at.choice.stop_s) == seconds.value == chosen, "a second at least"
    assert len(places[0].drawn) == 7


def test_every_axis_of_the_notebooks_views_has_words_and_a_unit_where_it_has_one():
    notebook = nbformat.read(PAGE, as_version=4)
    views = [cell.source for cell in notebook.cells if "px." in cell.source and "at.show" in cell.source]
    assert len(views) >= 6
    for view in views:
        assert "dtick" not in view, "values within one power of ten would have no tick"
        view = view.replace("x=now.along", 'x="offered_rate_rps"')
        axes = re.findall(r'^\s+[xy]="(\w+)"', view, re.MULTILINE)
        assert len(axes) == 2 and "labels=explore.AXES" in view and not set(axes) - set(explore.AXES), view
        for column in axes:
            unit = {"_us": "µs", "_rps": "r/s", "_s": "s of"}.get(column[column.rfind("_") :], "")
            assert unit in explore.AXES[column]


def test_a_variant_is_found_by_its_name_as_it_is_typed(choices):
    name = next(name for name in choices.variants("sample") if "\u202f" in name)
    for blank in (" ", ""):
        typed = name.replace("\u202f", blank)
        assert choices.first("sample", typed, None, 99.0).variant == name


def test_what_cannot_be_chosen_is_refused_in_a_line_that_says_what_can():
    choices = explore.Choices(sample_tables())
    profiled = sample_tables().runs.query("profiled")["run_id"].iloc[0]
    with pytest.raises(
        KvstudyError, match="was profiled, and no latency is read off(.|\n)*without a profile: "
    ):
        choices.first(None, None, profiled, 99.0)
    for percentile in ("99", 101.0, -1):
        with pytest.raises(KvstudyError, match="no percentile: (.|\n)*from 0 to 100"):
            choices.first(None, None, None, percentile)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"percentile": 300.0}, "no percentile: 300.0"),
        ({"start_s": 3, "stop_s": 3}, "no such time: from 3 to 3 s\n.*from 0 to 6"),
        ({"start_s": 9}, "no such time: from 9 to 6 s"),
        ({"stop_s": 7}, "no such time: from 0 to 7 s"),
        ({"percent": 99.0}, "nothing to choose is called percent\n.*percentile"),
        ({"start_s": "1"}, "not a time: start_s='1'\n.*a number of seconds"),
        ({"stop_s": None}, "not a time: stop_s=None"),
        ({"run_id": pd.Series(["one", "two"])}, "not one run_id: "),
    ],
)
def test_a_choice_that_does_not_exist_leaves_the_one_before(at, places, asked, message):
    at.show(lambda now: now.title)
    before = at.choice
    with pytest.raises(KvstudyError, match=message):
        at.choose(**asked)
    assert at.choice is before and len(places[0].drawn) == 1


def test_views_follow_the_choosers_of_a_cell_that_is_executed_again(places, monkeypatch):
    class Shell:
        execution_count, cell = 0, ""

        def get_parent(self):
            return {"metadata": {"cellId": self.cell}}

    def execute(cell, work):
        shell.cell, shell.execution_count = cell, shell.execution_count + 1
        return work()

    shell = Shell()
    monkeypatch.setattr(explore, "get_ipython", lambda: shell)
    monkeypatch.setattr(explore.notebook, "all_tables", sample_tables)
    first, second = execute("choosers", lambda: (explore.choose(), explore.choose()))
    for cell, at in (("one", first), ("two", second)):
        execute(cell, lambda at=at: at.show(lambda now: f"p{now.percentile:g}"))
    first, second = execute("choosers", lambda: (explore.choose(percentile=50.0), explore.choose()))
    second.choose(percentile=90.0)
    said = [[text.data for text in place.drawn] for place in places]
    assert said == [["p99", "p50"], ["p99", "p99", "p90"]]


def test_a_percentile_may_be_a_number_out_of_a_frame(at):
    at.choose(percentile=np.int64(50))
    assert at.choice.percentile == 50


def test_a_chart_that_is_no_function_of_the_choice_is_refused_with_an_example(at):
    with pytest.raises(KvstudyError, match="not a view: 'text'\n.*lambda now: "):
        at.show("text")


def test_choosers_follow_what_is_chosen_by_a_call(at, choices, places):
    at._repr_mimebundle_()
    at.show(lambda now: now.title)
    experiment, variant, run, percentile, seconds = at._choosers.children
    at.choose(percentile=97.5, start_s=1.5, stop_s=3)
    assert (percentile.value, seconds.value, at.choice.start_s) == (97.5, (1, 3), 1.5)
    other = choices.variants(experiment.value)[0]
    assert other != variant.value
    at.choose(variant=other)
    assert (variant.value, run.value) == (other, at.choice.run_id) and run.value in run.options
    assert len(places[0].drawn) == 3, "each choice draws once"


def test_profiled_runs_are_no_repeats(at):
    now = at.choice
    profiled = now.runs.loc[now.runs["profiled"], "run_id"]
    assert len(profiled)
    rows = now.tables.percentiles
    of_another = rows[rows["run_id"].isin(now.percentiles["run_id"].head(1))]
    with_latency = pd.concat([rows, *(of_another.assign(run_id=one) for one in profiled)], ignore_index=True)
    drawn = replace(now, tables=now.tables.but(percentiles=with_latency)).by_rate
    assert not set(drawn["run_id"]) & set(profiled) and len(drawn) == len(now.by_rate)


def test_a_percentile_with_too_few_samples_beyond_it_is_not_shown(at):
    at.choose(percentile=99.998)
    assert at.choice.by_rate["latency_us"].isna().all() and at.choice.seconds["at_us"].isna().all()
    at.choose(percentile=100.0)
    assert at.choice.seconds["at_us"].notna().all(), "the maximum is a fact"
    few = at.choice.part_and_rest.query("percentile >= 99.99")
    assert len(few) and few["latency_us"].isna().all()


def test_closed_loops_are_drawn_by_their_connections(at):
    now = at.choice
    closed = now.tables.runs.assign(offered_rate_rps=float("nan"), closed_loop=True)
    none_is_paced = replace(now, tables=now.tables.but(runs=closed))
    assert (now.along, now.not_along) == ("offered_rate_rps", "")
    assert (none_is_paced.along, none_is_paced.not_along) == ("connections", "")
    some = now.tables.runs.assign(
        offered_rate_rps=now.tables.runs["offered_rate_rps"].mask(np.arange(len(now.tables.runs)) < 3)
    )
    assert replace(now, tables=now.tables.but(runs=some)).not_along == "; without 3 of closed loops"


def test_any_percentile_has_a_latency_of_every_run(at):
    at.choose(percentile=99.0)
    usual = at.choice.by_rate.set_index("run_id")["latency_us"]
    at.choose(percentile=99.01)
    other = at.choice.by_rate.set_index("run_id")["latency_us"]
    assert set(other.index) == set(usual.index) and (other >= usual * 0.98).all() and len(other) > 10


def test_an_empty_interval_behind_the_end_is_no_second():
    found = sample_tables()
    last = found.intervals.groupby(["run_id", "latency_kind"]).tail(1)
    behind = last.assign(second=last["second"] + 1, start_s=last["start_s"] + 1, count=0)
    found = found.but(intervals=pd.concat([found.intervals, behind], ignore_index=True))
    choices = explore.Choices(found)
    now = choices.first(None, None, None, 99.0)
    assert (now.start_s, now.stop_s) == (0, 6) and now.seconds["second"].tolist() == list(range(6))


def test_where_nothing_but_duets_was_measured_every_view_says_so(monkeypatch):
    monkeypatch.setattr(explore.notebook, "all_tables", empty_tables)
    told = []
    monkeypatch.setattr(explore, "display", lambda shown: told.append(shown.data))
    at = explore.choose()
    at.show(lambda now: now.run["workload"])
    at.show(lambda now: now.seconds)
    assert told == [explore.NO_RUN] * 2 and at._repr_mimebundle_()["text/markdown"] == explore.NO_RUN
    assert at.choice.tables.runs.empty
    with pytest.raises(KvstudyError, match="no run to choose from"):
        at.choose(percentile=50.0)
    with pytest.raises(KvstudyError, match="no such run"):
        explore.choose(run_id="20261120T204223Z-put-rep1")
