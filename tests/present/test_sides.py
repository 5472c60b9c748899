"""What is compared with what when nobody says: labels first, never a nameless side where there are two
names."""

from dataclasses import replace

import pytest
from sample import sample_tables

from kvstudy.errors import ExperimentError
from kvstudy.present import before_after, notebook, sides, summary
from kvstudy.present.figures.ratios import ratios


def measured(monkeypatch, *labels: str):
    """Runs of these labels, one label measured after the other."""
    found = sample_tables(
        labels=labels, workloads=("unique_put",), rates=(1000.0,), connections=(4,), profiled=False
    )
    starts = [f"2026-11-20T{labels.index(label):02d}:00:00.000Z" for label in found.runs["label"]]
    found = replace(found, runs=found.runs.assign(start_utc=starts))
    monkeypatch.setattr(notebook, "all_tables", lambda: found)
    monkeypatch.setattr(notebook, "tables", lambda _experiment: found)
    return found


@pytest.mark.parametrize(
    "labels",
    [
        ("", "before", "after"),
        ("before", "after", ""),
        ("before", "", "after"),
        ("after", "before"),
        ("x", "before", "after", "y"),
    ],
    ids=lambda labels: "-".join(label or "none" for label in labels),
)
def test_before_is_compared_with_after_whatever_else_was_measured_and_when(monkeypatch, labels):
    measured(monkeypatch, *labels)
    both = sides.choose_sides()
    assert (both.factor, both.before, both.after) == ("label", "before", "after")
    assert set(both.tables.runs["label"]) == {"before", "after"}


def test_of_other_names_the_first_is_compared_with_the_last_and_the_rest_is_named(monkeypatch):
    measured(monkeypatch, "old", "", "middle", "new")
    both = sides.choose_sides()
    assert (both.before, both.after) == ("old", "new")
    told = both.source().data
    assert (
        "Compared by label: new against old; left out: no label and middle. The parameters `before` "
        "and `after` name other sides."
    ) in told
    assert told.endswith(f"**{sides.APART}**")


def test_runs_without_a_label_are_a_side_where_there_is_one_label(monkeypatch):
    measured(monkeypatch, "", "after")
    both = sides.choose_sides()
    assert (both.before, both.after) == ("", "after")
    assert "Compared by label: after against no label." in both.source().data


def test_a_side_that_is_named_is_taken(monkeypatch):
    measured(monkeypatch, "", "before", "after")
    assert (sides.choose_sides(before="").before, sides.choose_sides(before="").after) == ("", "after")
    assert (sides.choose_sides(after="before").before, sides.choose_sides(after="before").after) == (
        "after",
        "before",
    )


def test_one_label_alone_is_said_to_have_nothing_beside_it(monkeypatch):
    measured(monkeypatch, "")
    assert (
        sides.choose_sides(factor="label")
        .source()
        .data.endswith("They are all of one label, no label: there is nothing to compare them with.")
    )


def test_where_invalid_runs_leave_nothing_to_compare_the_chart_says_how_many_and_why(monkeypatch):
    found = measured(monkeypatch, "before", "after")
    disturbed = found.runs.loc[found.runs["label"] == "after", "run_id"]
    verdicts = ["FAIL" if run_id in set(disturbed) else "PASS" for run_id in found.runs["run_id"]]
    checks = found.validity.assign(
        verdict=[
            "FAIL" if run_id in set(disturbed) and check == "samples" else "PASS"
            for run_id, check in zip(found.validity["run_id"], found.validity["check"], strict=True)
        ]
    )
    found = replace(found, runs=found.runs.assign(verdict=verdicts), validity=checks)
    monkeypatch.setattr(notebook, "tables", lambda _experiment: found)
    both = sides.choose_sides(experiment="sample")
    assert both.doubts() == (
        "3 of 3 runs of after are invalid, most often by samples (3). What each check saw stands under "
        "Doubts."
    )
    assert ratios(both.compared(), *both.names, both.doubts()).layout.meta["drawn"].endswith(both.doubts())


def test_valid_runs_raise_no_doubts(monkeypatch):
    measured(monkeypatch, "before", "after")
    assert sides.choose_sides().doubts() == ""


def test_one_side_is_not_compared_with_itself(monkeypatch):
    measured(monkeypatch, "")
    both = sides.choose_sides()
    assert both.before == both.after and both.compared().empty
    assert summary.compared(both.compared()).empty
    told = ratios(both.compared(), *both.names, both.doubts()).layout.meta
    assert told["title"].startswith("Nothing to draw") and "against" not in told["finding"]
    assert told["drawn"] == "They are all of one label, no label: there is nothing to compare them with."


def with_variants(monkeypatch, *variants: str):
    """Runs of these variants, as many of each."""
    found = measured(monkeypatch, *variants)
    found = replace(found, runs=found.runs.assign(variant=found.runs["label"], label=""))
    monkeypatch.setattr(notebook, "tables", lambda _experiment: found)
    return found


@pytest.mark.parametrize(
    ("variants", "order"),
    [
        (("heap=224m", "heap=64m", "heap=512m"), ("heap=64m", "heap=512m")),
        (("heap=1g", "heap=512m"), ("heap=512m", "heap=1g")),
        (("cache_entries=1000", "cache_entries=300"), ("cache_entries=300", "cache_entries=1000")),
        (("heap=131072k", "heap=128m"), ("heap=128m", "heap=131072k")),
        (("gc=Epsilon", "gc=G1"), ("gc=G1", "gc=Epsilon")),
    ],
    ids=lambda names: "-".join(names),
)
def test_variants_stand_in_the_order_of_what_they_say_the_default_first(monkeypatch, variants, order):
    with_variants(monkeypatch, *variants)
    both = sides.choose_sides("sample", "variant")
    assert (both.before, both.after) == order


@pytest.mark.parametrize("factor", ["verdict", "run_id", "repeat", "response_max_us", "misspelt", ["label"]])
def test_what_tells_no_configuration_from_another_is_no_factor(monkeypatch, factor):
    measured(monkeypatch, "before", "after")
    with pytest.raises(ExperimentError, match="no such factor") as error:
        sides.choose_sides("sample", factor)
    assert "factors: label, variant, connections, workload" in error.value.hint
    assert sides.choose_sides("sample", "offered_rate_rps").before == 1000.0


@pytest.mark.parametrize("before", [["before"], [4], {"label": 1}, 4])
def test_a_side_of_another_kind_is_no_side(monkeypatch, before):
    measured(monkeypatch, "before", "after")
    for factor in ("label", "connections"):
        if (factor, before) != ("connections", 4):
            with pytest.raises(ExperimentError, match="no run with this"):
                sides.choose_sides("sample", factor, before=before)


def test_below_a_duet_without_independent_runs_nothing_is_said_to_be_missing(monkeypatch):
    found = measured(monkeypatch, "before", "after")
    duet = object()
    both = before_after.independent_runs(duet, "of-a-duet-alone", None, None, None)
    assert both.source().data == sides.DUET_ALONE and both.compared().empty
    assert both.doubts() == sides.DUET_ALONE, "and not that they are all of one label"
    with pytest.raises(ExperimentError, match="no run with this label"):
        before_after.independent_runs(duet, found.runs["experiment"].iloc[0], None, "misspelt", None)
