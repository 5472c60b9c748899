"""Profiles in overview."""

from dataclasses import replace

import pandas as pd
from sample import empty_tables

from kvstudy.present.figures.stacks import FRAMES_MAX, icicle, subsystem_shares


def _tables_of(profiles, stacks):
    rows = [{"run_id": "r", "event": "cpu", "stack": stack, "samples": samples} for stack, samples in stacks]
    return replace(profiles, stacks=pd.DataFrame(rows))


def test_a_frame_holds_its_children_and_itself(profiles):
    trace = icicle(_tables_of(profiles, [("a;b", 60), ("a;c", 30), ("a", 10)])).data[0]
    values = dict(zip(trace.labels, trace.values, strict=True))
    assert values == {"all cpu": 100, "a": 100, "b": 60, "c": 30}
    told = dict(zip(trace.labels, trace.hovertext, strict=True))
    assert told["a"].endswith("total 100.0%, self 10.0%")


def test_small_frames_are_left_out_and_the_chart_says_so(profiles):
    figure = icicle(_tables_of(profiles, [("a;b", 999), ("a;c", 1)]))
    assert "c" not in figure.data[0].labels
    assert "left out" in figure.layout.meta["drawn"]


def test_no_more_frames_than_a_browser_draws_at_once(profiles):
    figure = icicle(_tables_of(profiles, [(f"a;f{i}", 1000 + i) for i in range(2000)]), share_min=0)
    assert len(figure.data[0].labels) <= FRAMES_MAX + 1


def test_the_same_frame_under_two_parents_stays_two_frames(profiles):
    trace = icicle(_tables_of(profiles, [("a;x", 50), ("b;x", 50)])).data[0]
    assert list(trace.labels).count("x") == 2
    assert len(set(trace.ids)) == len(trace.ids)


def test_shares_stack_to_the_whole(profiles):
    shares = pd.DataFrame({"label": "before", "event": "cpu", "subsystem": ["store", "GC"], "share": [0.7, 0.3]})
    figure = subsystem_shares(shares)
    assert sum(trace.x[0] for trace in figure.data) == 1.0
    assert figure.layout.meta["finding"].startswith("Most cpu goes to store 70.0 %")


def test_no_rows_give_charts_that_say_so():
    assert "Nothing to draw" in icicle(empty_tables()).layout.title.text
    assert "Nothing to draw" in subsystem_shares(pd.DataFrame()).layout.title.text
