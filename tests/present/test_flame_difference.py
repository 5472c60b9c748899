"""Differences of profiles; that the page works is tested in a browser."""

import pandas as pd
import pytest
from sample import empty_tables, failed, keep, sample_tables

from kvstudy.errors import KvstudyError
from kvstudy.present import flame
from kvstudy.present.flame_difference import between, comparable, difference, difference_page, shares
from kvstudy.present.stack_tree import StackTree


def tree(*stacks) -> StackTree:
    return StackTree.of(pd.DataFrame(stacks, columns=["stack", "samples"]), 0)


def test_a_frame_holds_its_callees_and_itself():
    made = tree(("a;b", 60), ("a;c", 30), ("a", 10))
    assert made.sums == {("a",): 100, ("a", "b"): 60, ("a", "c"): 30}
    assert made.own_shares() == {"a": 0.1, "b": 0.6, "c": 0.3}
    assert made.share(("a", "b")) == 0.6 and made.share(("x",)) == 0


def test_a_page_of_another_converter_is_refused_and_not_half_changed():
    with pytest.raises(KvstudyError, match="0 places like"):
        difference_page("<html><h1>cpu</h1></html>", tree(("a", 1)), tree(("a", 1)), "title")


PAGE = (
    "<head></head><h1>cpu</h1>\n#canvas {width: 100%; height: 16px}\nconst levels = Array(1);\n"
    "const maxdiff = -1;\n<script>const cpool = [];</script>"
)


@pytest.fixture
def two_labels(monkeypatch):
    """Of each label a profiled run of two workloads; every one has a page."""
    monkeypatch.setattr(flame, "page_of", lambda *_: PAGE)
    return keep(
        sample_tables(labels=("before", "after"), rates=(1000.0,), connections=(4,), repeats=1),
        lambda run: run.profiled,
    )


def of(tables, label, workload):
    return tables.runs.loc[(tables.runs["label"] == label) & (tables.runs["workload"] == workload), "run_id"]


def test_valid_runs_that_are_alike_in_all_else_are_compared(two_labels):
    one_failed = failed(two_labels, of(two_labels, "after", "unique_put"))
    assert set(comparable(one_failed, "label", "before", "after").runs["workload"]) == {"repeated_get"}
    html = difference(one_failed, "label", "before", "after").data
    assert (
        html.index("after against before, self share of cpu: ")
        < html.index("before against after, self share")
        and "INVALID" not in html
        and "repeated_get" in html
    )


def test_as_many_runs_of_one_side_as_of_the_other(two_labels):
    lone = keep(two_labels, lambda run: run.label == "before" or run.workload == "repeated_get")
    assert sorted(comparable(lone, "label", "before", "after").runs["label"]) == ["after", "before"]


def test_shares_of_two_workloads_are_bars_of_their_own(two_labels):
    found = shares(two_labels, "label", "before", "after")
    assert set(found["side"]) == {
        f"{label}, {workload}" for label in ("before", "after") for workload in ("unique_put", "repeated_get")
    }
    one = keep(two_labels, lambda run: run.workload == "unique_put")
    assert set(shares(one, "label", "before", "after")["side"]) == {"before", "after"}


def test_a_difference_of_invalid_runs_says_so_and_ranks_nothing(two_labels):
    all_failed = failed(two_labels, two_labels.runs.loc[two_labels.runs["label"] == "after", "run_id"])
    html = difference(all_failed, "label", "before", "after").data
    assert "after against before, after INVALID: no_foreign_load: 30.00 %; no ranking" in html
    assert (
        "self share" not in html
        and "&lt;h1&gt;INVALID: cpu: after against before" in html
        and flame.MARKED in html
    )


def test_without_profiles_of_both_sides_it_says_what_to_measure():
    assert "profile: [cpu, alloc]" in difference(empty_tables(), "label", "before", "after").data
    assert "the slow seconds" in between(empty_tables(), "cpu", "cpu_slow").data
