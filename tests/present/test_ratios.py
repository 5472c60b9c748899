"""Before against after: what may be said, and how it is drawn."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from sample import empty_tables, keep, sample_tables

from kvstudy.analyse.configuration import comparisons, configured
from kvstudy.plan.unique_keys import enough_unique_keys
from kvstudy.present import theme
from kvstudy.present.figures.ratios import ratios
from kvstudy.present.summary import by_configuration, compared, run_list, said_once, steepest


@pytest.fixture(scope="module")
def both():
    return sample_tables(
        labels=("before", "after"), rates=(1000.0, 4000.0), connections=(4,), repeats=5, profiled=False
    )


def test_only_runs_that_are_alike_in_all_else_are_compared(both):
    rows = comparisons(both, "label", "before", "after", (99.0,))
    assert len(rows) == both.runs.groupby(["workload", "offered_rate_rps"]).ngroups
    assert (rows[["runs_before", "runs_after"]] == 5).all().all()


def test_unique_put_keeps_its_data_although_the_keys_that_a_plan_chooses_grow_with_the_rate(both):
    runs = both.runs.query("workload == 'unique_put'")

    def data(keys):
        arguments = [json.dumps({"key_count": count}) for count in keys]
        return configured(runs.assign(workload_args=arguments))["data"]

    chosen = [
        enough_unique_keys(rate, duration)
        for rate, duration in zip(runs["offered_rate_rps"], runs["duration_s"], strict=True)
    ]
    assert len(set(chosen)) > 1 and data(chosen).nunique() == 1
    assert data([1000, *chosen[1:]]).nunique() == 2, "others than a plan chooses are other data"


def test_an_invalid_run_takes_no_part(both):
    failed = both.runs["run_id"].iloc[0]
    rows = comparisons(keep(both, lambda run: run.run_id != failed), "label", "before", "after", (99.0,))
    changed = both.runs.assign(
        verdict=[
            "FAIL" if run_id == failed else verdict
            for run_id, verdict in zip(both.runs["run_id"], both.runs["verdict"], strict=True)
        ]
    )
    changed["excluded"] = ["outside" if run_id == failed else "" for run_id in changed["run_id"]]
    assert comparisons(replace(both, runs=changed), "label", "before", "after", (99.0,)).equals(rows)


def test_every_comparison_is_a_point_with_its_interval_coloured_by_its_word(both):
    rows = comparisons(both, "label", "before", "after")
    figure = ratios(rows, "before", "after")
    assert sum(len(trace.x) for trace in figure.data) == len(rows)
    assert {trace.name: trace.marker.color for trace in figure.data} == {
        word: theme.NAMED[word] for word in set(rows["word"])
    }
    assert figure.layout.shapes[0].x0 == 1


def test_too_few_runs_say_so_under_the_title():
    few = sample_tables(
        labels=("before", "after"), rates=(1000.0,), connections=(4,), repeats=2, profiled=False
    )
    figure = ratios(comparisons(few, "label", "before", "after"), "before", "after")
    assert "always “cannot tell”" in figure.layout.meta["drawn"]
    assert "cannot tell of" in figure.layout.meta["finding"]


def test_nothing_alike_gives_a_chart_that_says_so(both):
    figure = ratios(comparisons(both, "label", "before", "none"), "before", "none")
    assert "Nothing to draw" in figure.layout.title.text
    assert figure.layout.meta["drawn"].startswith("Before: before; after: none. Measure both")


def test_tables_for_people_have_a_row_for_every_configuration_and_run(both):
    assert len(by_configuration(both)) == 8
    assert len(run_list(both)) == len(both.runs)
    assert len(compared(comparisons(both, "label", "before", "after"))) == len(
        comparisons(both, "label", "before", "after")
    )


def test_the_largest_difference_is_told_with_interval_word_and_runs(both):
    text = steepest(both, "offered_rate_rps").data
    assert text.startswith("**Found:**") and "ratio" in text and "5 and 5 runs" in text


def test_the_largest_is_the_largest_that_is_decided(both):
    """Else one page calls 1.13 × the largest beside 1.38 ×, which it cannot tell."""
    rows = (
        comparisons(both, "label", "before", "after", (99.0,))
        .head(3)
        .assign(
            measure="p99",
            ratio=[9.0, 1.2, 0.5],
            low=[0.9, 1.1, 0.4],
            high=[20.0, 1.3, 0.6],
            word=["cannot tell", "slower", "faster"],
            workload=["wild", "firm", "least"],
        )
    )
    finding = ratios(rows, "before", "after").layout.meta["finding"]
    assert "; the largest decided: least p99 0.500 × [0.400, 0.600 ×]" in finding  # half is more than 1.2
    text = steepest(both, "offered_rate_rps").data
    assert ("The largest decided: " in text) == (
        "slower" in text.split(". The")[0] or "faster" in text.split(". The")[0]
    )


def test_tables_begin_with_the_answer_and_say_once_what_is_the_same_in_every_row(both):
    """At the end of a wide table the answer is out of sight."""
    told = compared(comparisons(both, "label", "before", "after"))
    assert list(told.columns[:4]) == ["word", "measure", "ratio", "runs"]
    assert "connections" not in told and told.attrs["caption"] == "In every row: connections 4."
    assert list(run_list(both).columns[:3]) == ["verdict", "run", "not passed"]
    columns = list(by_configuration(both).columns)
    assert columns.index("valid runs") < columns.index("achieved rate") and not {
        "threads",
        "connections",
    } & set(columns)


def test_a_row_of_medians_names_the_valid_runs_that_it_rests_on(both):
    named = " ".join(by_configuration(both)["runs"]).split()
    assert sorted(named) == sorted(both.runs.loc[both.runs["verdict"] != "FAIL", "run_id"])


def test_threads_that_follow_the_connections_are_told_by_these():
    frame = pd.DataFrame({"connections": [1, 4], "threads": [1, 4], "p99": ["1 ms", "2 ms"]})
    assert list(said_once(frame, ["connections", "threads"])) == ["connections", "p99"]
    assert (
        said_once(frame, ["connections", "threads"]).attrs["caption"]
        == "In every row: as many threads as connections."
    )
    nameless = frame.assign(label="no label")
    assert said_once(nameless, ["label"]).attrs["caption"] == "In every row: no label."
    assert list(said_once(frame.assign(threads=[1, 2]), ["connections", "threads"])) == [
        "connections",
        "threads",
        "p99",
    ]
    assert list(said_once(frame.head(1), ["connections", "threads"])) == ["connections", "threads", "p99"]


def test_without_runs_nothing_is_claimed():
    assert "nothing is compared" in steepest(empty_tables(), "workload").data


def test_the_steepest_is_found_where_some_pairs_have_nothing_in_common():
    tables = sample_tables(workloads=("repeated_get", "unique_put", "random_get"), profiled=False)
    alone = tables.runs["workload"] == "random_get"
    tables = replace(
        tables, runs=tables.runs.assign(connections=tables.runs["connections"].where(~alone, 64))
    )
    assert "p99" in steepest(tables, "workload").data


def test_a_higher_rate_points_to_the_right_and_is_green(both):
    faster = (
        comparisons(both, "label", "before", "after", (99.0,))
        .head(1)
        .assign(measure="achieved rate", ratio=1.2, low=1.1, high=1.3, word="faster")
    )
    marker = next(trace for trace in ratios(faster, "before", "after").data if len(trace.x)).marker
    assert (marker.symbol[0], marker.color) == ("triangle-right", theme.NAMED["faster"])


def test_two_generators_stand_in_rows_that_name_them(both):
    first = both.runs["run_id"].iloc[0]
    two = replace(
        both,
        runs=both.runs.assign(
            generator=["wrk" if run_id == first else "loadgen" for run_id in both.runs["run_id"]]
        ),
    )
    assert set(by_configuration(two)["generator"]) == {"wrk", "loadgen"}
    assert "generator" not in by_configuration(both)


def test_one_comparison_is_told_by_its_number_and_word():
    few = sample_tables(
        labels=("before", "after"),
        rates=(1000.0,),
        connections=(4,),
        workloads=("mixed",),
        repeats=2,
        profiled=False,
    )
    finding = ratios(comparisons(few, "label", "before", "after", (99.0,)), "before", "after").layout.meta[
        "finding"
    ]
    assert finding.startswith("after against before: p99 ") and finding.endswith(", cannot tell")


def test_sides_of_which_some_runs_came_in_turn_are_not_said_to_be_one_behind_the_other(both):
    rows = comparisons(both, "label", "before", "after", (99.0,))
    assert "drifts" not in ratios(rows.assign(apart=False), "before", "after").layout.meta["drawn"]
    drawn = ratios(rows.assign(apart=True), "before", "after").layout.meta["drawn"]
    assert "The sides were not measured in turn" in drawn and "All runs" not in drawn
