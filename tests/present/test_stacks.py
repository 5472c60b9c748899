"""Profiles in overview."""

from dataclasses import replace

import pandas as pd
from sample import empty_tables, failed

from kvstudy.analyse.configuration import CONFIGURATION
from kvstudy.analyse.schema import PROFILE_EVENTS
from kvstudy.present import theme
from kvstudy.present.figures.marks import INVALID_NAME
from kvstudy.present.figures.stacks import FRAMES_MAX, icicle, subsystem_shares
from kvstudy.present.stack_tree import SWITCHING_TOLD


def _tables_of(profiles, stacks):
    rows = [
        {"run_id": profiles.runs["run_id"].iloc[0], "event": "cpu", "stack": stack, "samples": samples}
        for stack, samples in stacks
    ]
    return replace(profiles, stacks=pd.DataFrame(rows))


def _shares(*rows):
    """``rows``: label, subsystem, share and why the run is invalid ("": valid); a run for each label and
    reason."""
    shares = pd.DataFrame(rows, columns=["label", "subsystem", "share", "why"])
    asked = {name: "" for name in CONFIGURATION if name != "label"} | {"configuration": ""}
    return shares.assign(
        event="cpu", run_id=shares["label"] + shares["why"], valid=shares["why"] == "", **asked
    )


def _five_times(shares):
    return pd.concat([shares.assign(run_id=f"{number}-" + shares["run_id"]) for number in range(5)])


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
    figure = subsystem_shares(_shares(("before", "store", 0.7, ""), ("before", "GC", 0.3, "")))
    assert sum(trace.x[0] for trace in figure.data) == 1.0
    assert figure.layout.meta["finding"].startswith("Most CPU went to store 70.0 %")


def test_fewer_than_five_runs_are_told_as_what_they_were():
    rows = _shares(("before", "store", 0.7, ""), ("before", "GC", 0.3, ""))
    assert subsystem_shares(rows).layout.meta["finding"] == (
        "Most CPU went to store 70.0 % and GC 30.0 %, in 1 profiled run a bar"
    )
    assert subsystem_shares(_five_times(rows)).layout.meta["finding"] == (
        "Most CPU goes to store 70.0 % and GC 30.0 %"
    )


def test_each_rate_is_a_bar_of_its_own():
    rows = _shares(("put", "store", 0.7, ""), ("put", "GC", 0.3, ""))
    both = pd.concat(
        [
            rows.assign(offered_rate_rps=rate, run_id=str(rate), configuration=str(rate))
            for rate in (2000.0, 20_000.0)
        ]
    )
    bars = {name for trace in subsystem_shares(both).data for name in trace.y}
    assert bars == {"put, 2\u202f000 r/s", "put, 20\u202f000 r/s"}


def test_an_invalid_run_is_left_out_where_a_valid_one_is():
    figure = subsystem_shares(
        _shares(
            ("before", "store", 0.2, ""),
            ("before", "response", 0.8, ""),
            ("before", "JIT", 1.0, "warm_up: 900 us, then 500 us"),
        )
    )
    assert {trace.name: trace.x[0] for trace in figure.data if len(trace.x)} == {
        "store": 0.2,
        "response": 0.8,
    }
    assert "INVALID" not in figure.to_json()


def test_a_value_without_a_valid_run_is_grey_called_invalid_and_in_no_ranking():
    figure = subsystem_shares(
        _shares(
            ("before", "store", 0.2, ""),
            ("before", "response", 0.8, ""),
            ("after", "JIT", 1.0, "warm_up: 900 us, then 500 us"),
        )
    )
    finding = figure.layout.meta["finding"]
    assert finding == (
        "Most CPU went to response 80.0 % and store 20.0 %, in 1 profiled run a bar. Left out, INVALID: "
        "after (warm_up: 900 us, then 500 us)"
    )
    (grey,) = [trace for trace in figure.data if trace.name == "JIT" and len(trace.x)]
    assert (list(grey.y), grey.marker.color) == (["after (INVALID)"], theme.INVALID)
    assert [trace.name for trace in figure.data if trace.showlegend is None] == [INVALID_NAME]


def test_of_invalid_runs_alone_there_is_no_ranking():
    finding = subsystem_shares(_shares(("before", "store", 1.0, "rate_held: 71 %"))).layout.meta["finding"]
    assert finding == "INVALID: before (rate_held: 71 %). No ranking rests on invalid runs"


def test_waiting_for_events_is_not_what_most_cpu_goes_to():
    finding = subsystem_shares(
        _shares(("before", "idle", 0.6, ""), ("before", "response", 0.3, ""), ("before", "store", 0.1, ""))
    ).layout.meta["finding"]
    assert (
        finding
        == "Most CPU went to response 30.0 % and store 10.0 %, beside 60.0 % around waiting for events "
        "(idle), in 1 profiled run a bar"
    )


def test_of_two_bars_each_is_told_by_its_own_numbers():
    finding = subsystem_shares(_shares(("a", "store", 1.0, ""), ("b", "JIT", 1.0, ""))).layout.meta["finding"]
    assert finding == "Most CPU went to store 100 % (a); JIT 100 % (b), in 1 profiled run a bar"


def test_of_more_bars_it_is_told_in_how_many_and_no_median_of_them():
    finding = subsystem_shares(
        _shares(("a", "store", 1.0, ""), ("b", "JIT", 0.9, ""), ("b", "GC", 0.1, ""), ("c", "JIT", 1.0, ""))
    ).layout.meta["finding"]
    assert finding == (
        "Most CPU went to JIT in 2 of 3 bars and store in 1 of 3 bars, in 1 profiled run a bar"
    )


def test_a_heading_is_short_enough_for_a_telephone():
    shares = pd.concat(
        [_shares(("before", "store", 1.0, "")).assign(event=event) for event in PROFILE_EVENTS]
    )
    headings = [heading.text for heading in subsystem_shares(shares).layout.annotations]
    assert len(headings) == len(PROFILE_EVENTS) and max(map(len, headings)) <= 26


def test_an_icicle_names_its_run_and_leaves_waiting_out_of_its_ranking(profiles):
    stacks = [
        ("java/lang/Thread.run;one/nio/net/NativeSelector.epoll_wait", 60),
        ("kv/lsm/LsmStore.get;finish_task_switch_[k]", 40),
    ]
    meta = icicle(_tables_of(profiles, stacks)).layout.meta
    workload = profiles.runs["workload"].iloc[0]
    assert meta["finding"] == (
        f"Hottest frames of {workload}, sample, 4 connections, 1\u202f000 r/s by self: "
        "finish_task_switch 40.0 %, beside waiting for events (idle) 60.0 %"
    )
    assert SWITCHING_TOLD in meta["drawn"]


def test_what_is_allocated_around_waiting_is_allocated(profiles):
    tables = _tables_of(
        profiles,
        [("java/lang/Thread.run;one/nio/net/NativeSelector.epoll_wait", 60), ("kv/lsm/LsmStore.get", 40)],
    )
    tables = replace(tables, stacks=tables.stacks.assign(event="alloc"))
    assert (
        icicle(tables, "alloc")
        .layout.meta["finding"]
        .endswith("by self: NativeSelector.epoll_wait 60.0 % and LsmStore.get 40.0 %")
    )


def test_an_icicle_of_an_invalid_run_is_grey_and_says_why(profiles):
    figure = icicle(failed(_tables_of(profiles, [("a;b", 60), ("a;c", 40)]), profiles.runs["run_id"]))
    assert figure.layout.meta["finding"].startswith("INVALID: no_foreign_load: 30.00 %. ")
    assert "Hottest" not in figure.layout.meta["finding"] and set(figure.data[0].marker.colors[1:]) == {
        theme.INVALID
    }


def test_no_rows_give_charts_that_say_so():
    assert "Nothing to draw" in icicle(empty_tables()).layout.title.text
    assert "Nothing to draw" in subsystem_shares(pd.DataFrame()).layout.title.text
