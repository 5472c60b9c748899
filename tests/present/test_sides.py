"""What is compared with what when nobody says: labels first, never a nameless side where there are two
names."""

from dataclasses import replace

import pytest
from sample import sample_tables

from kvstudy.present import notebook, sides
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
