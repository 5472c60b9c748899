"""Latency and achieved rate against offered rate; the rule of the saturation point; throughput and
scalability by connections."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sample import empty_tables, failed, keep, sample_tables

from kvstudy.analyse.rates import saturation_points
from kvstudy.present import summary, theme
from kvstudy.present.figures.rate import achieved_against_offered, latency_against_rate
from kvstudy.present.figures.scalability import scalability
from kvstudy.present.figures.spectrum import percentile_spectrum


def _runs(pairs):
    return pd.DataFrame(
        [
            {"group": "g", "closed_loop": False, "offered_rate_rps": offered, "achieved_rate_rps": achieved}
            for offered, achieved in pairs
        ]
    )


@pytest.fixture(scope="module")
def five():
    """As many runs at each rate as a word needs; 16 000 r/s is past saturation."""
    return sample_tables(repeats=5, seconds=2, profiled=False)


def test_saturation_is_the_lowest_rate_whose_median_is_under_99_percent():
    point = saturation_points(
        _runs([(1000, 1000), (2000, 1979), (2000, 1981), (2000, 1985), (4000, 3000)]), ["group"]
    ).iloc[0]
    assert (point["highest_held_rps"], point["saturation_rps"]) == (2000, 4000)


def test_a_rate_held_above_the_saturation_point_does_not_count():
    point = saturation_points(_runs([(1000, 1000), (2000, 1500), (4000, 4000)]), ["group"]).iloc[0]
    assert (point["highest_held_rps"], point["saturation_rps"]) == (1000, 2000)


def test_no_saturation_is_made_up_where_every_rate_was_held():
    point = saturation_points(_runs([(1000, 1000), (2000, 2000)]), ["group"]).iloc[0]
    assert point["highest_held_rps"] == 2000
    assert np.isnan(point["saturation_rps"])


def test_the_saturation_point_is_drawn_in_every_panel(five):
    figure = latency_against_rate(five, panel_by="workload")
    assert {shape.x0 for shape in figure.layout.shapes} == {16000.0}
    assert {shape.xref for shape in figure.layout.shapes} == {"x", "x2"}


def test_a_run_that_died_without_a_result_did_not_hold_its_rate_in_either_chart(five):
    died = five.runs["offered_rate_rps"] == 4000.0
    runs = five.runs.assign(
        outcome=five.runs["outcome"].mask(died, "failed: service ended: exit_code=1"),
        verdict=five.runs["verdict"].mask(died, "FAIL"),
        excluded=five.runs["excluded"].mask(died, "service"),
        achieved_rate_rps=five.runs["achieved_rate_rps"].mask(died),
    )
    gone = five.percentiles["run_id"].isin(runs.loc[died, "run_id"])
    found = replace(five, runs=runs, percentiles=five.percentiles[~gone])
    for figure in (latency_against_rate(found), achieved_against_offered(found)):
        assert {shape.x0 for shape in figure.layout.shapes} == {4000.0}


def test_every_run_is_a_point_and_invalid_ones_are_crosses(tables):
    figure = latency_against_rate(tables)
    points = [
        trace for trace in figure.data if trace.mode == "markers" and trace.x[0] is not None
    ]  # but for the legend's
    assert sum(len(trace.x) for trace in points) == len(tables.runs)
    crosses = [trace for trace in points if trace.marker.symbol == "x-thin"]
    assert sum(len(trace.x) for trace in crosses) == (tables.runs["verdict"] == "FAIL").sum()
    assert crosses[0].marker.line.color == theme.INVALID


def test_the_finding_names_the_rate_that_was_held(five):
    assert "held 4\u202f000 r/s" in latency_against_rate(five, panel_by="workload").layout.meta["finding"]


def test_from_three_runs_at_a_rate_the_chart_says_no_more_than_the_table(tables):
    for draw in (latency_against_rate, achieved_against_offered):
        meta = draw(tables).layout.meta
        assert meta["finding"] == "Cannot tell which rate is held: fewer than 5 runs at a rate"
        assert not draw(tables).layout.shapes and "dashed" not in meta["drawn"]
    assert set(summary.held(tables)["highest rate held"]) == {"cannot tell"}


def test_beside_lines_of_five_runs_at_a_rate_those_of_fewer_are_counted(five):
    few = (five.runs["workload"] == "unique_put") & (five.runs["repeat"] > 3)
    mixed = five.only(five.runs.loc[~few, "run_id"])
    finding = latency_against_rate(mixed, panel_by="workload").layout.meta["finding"]
    assert "held 4\u202f000 r/s" in finding
    assert finding.endswith("; of 2 of 4 lines the runs cannot tell: fewer than 5 runs at a rate")


def test_a_dashed_line_is_spoken_of_only_where_there_is_one(five):
    assert "dashed" in latency_against_rate(five).layout.meta["drawn"]
    slow = latency_against_rate(five.select(offered_rate_rps=[1000.0, 4000.0]))
    assert not slow.layout.shapes and "dashed" not in slow.layout.meta["drawn"]


def test_of_lines_that_all_held_their_rates_none_is_named_as_the_best(five):
    finding = latency_against_rate(
        five.select(offered_rate_rps=[1000.0, 4000.0]), panel_by="workload"
    ).layout.meta["finding"]
    assert (
        finding.startswith("Every offered rate was achieved, up to 4\u202f000 r/s, there with p99 ")
        and "unique_put" not in finding
    )
    assert (
        achieved_against_offered(five.select(offered_rate_rps=4000.0)).layout.meta["finding"]
        == "The only rate offered, 4\u202f000 r/s, was achieved"
    )


def test_where_no_run_is_informative_nothing_is_said_of_the_rate(tables):
    disturbed = pd.DataFrame(
        {
            "run_id": tables.runs["run_id"],
            "check": "no_foreign_load",
            "verdict": "FAIL",
            "observed": "80 %",
            "required": "≤ 2 %",
        }
    )
    silent = replace(tables, validity=disturbed, runs=tables.runs.assign(verdict="FAIL", excluded="outside"))
    for draw in (latency_against_rate, achieved_against_offered):
        assert "cannot be told" in draw(silent).layout.meta["finding"]


def test_runs_of_several_experiments_and_sizes_are_lines_of_several_colours(tables):
    tables = tables.select(connections=1, workload="unique_put")
    other = tables.runs["repeat"] == 2
    sizes = [
        "{}" if repeat == 1 else f'{{"key_bytes": {8 * repeat}, "value_bytes": 100}}'
        for repeat in tables.runs["repeat"]
    ]
    figure = latency_against_rate(
        replace(
            tables,
            runs=tables.runs.assign(
                experiment=other.map({True: "report-4", False: "report-1"}), workload_args=sizes
            ),
        ),
        colour_by="series",
    )
    lines = {trace.name: trace.line.color for trace in figure.data if trace.mode == "lines"}
    assert list(lines) == ["report-1, default", "report-1, key 24 B, value 100 B", "report-4"]
    assert tuple(lines.values()) == theme.CATEGORIES[:3]


def test_lines_that_connections_alone_tell_apart_have_the_colours_of_connections(tables):
    figure = latency_against_rate(tables, colour_by="series", panel_by="workload")
    lines = {trace.name: trace.line.color for trace in figure.data if trace.mode == "lines"}
    assert lines == {
        "1 connection": theme.colours("connections", [1])[1],
        "4 connections": theme.colours("connections", [4])[4],
    }


def test_more_lines_than_colours_go_into_panels(tables):
    busy = sample_tables(connections=(1, 2, 4, 8, 16), rates=(1000.0, 2000.0), repeats=1, profiled=False)
    assert len(latency_against_rate(busy, colour_by="series").layout.meta["panels"]) == 2


def test_the_table_of_held_rates_has_a_row_for_each_size_of_the_workload(tables):
    sizes = ["{}" if repeat == 1 else '{"value_bytes": 4096}' for repeat in tables.runs["repeat"]]
    rows = summary.held(replace(tables, runs=tables.runs.assign(workload_args=sizes)))
    assert len(rows) == 8 and set(rows["sizes"]) == {"default", "value 4 KiB"}
    assert "sizes" not in summary.held(tables)
    assert isinstance(rows.index, pd.RangeIndex), "a table shows any other as a column"


def test_achieved_rate_stands_against_the_diagonal(tables):
    assert "achieved = offered" in {trace.name for trace in achieved_against_offered(tables).data}


def test_a_run_that_died_without_a_percentile_is_counted_among_those_that_are_left_out(tables):
    """Nothing of it is drawn, and the chart said that all runs were valid."""
    three = keep(
        tables,
        lambda run: run.connections == 4 and run.workload == "unique_put" and run.offered_rate_rps == 1000,
    )
    died = three.runs["run_id"].iloc[0]
    found = failed(three, [died], "completed", "failed: service died", "service")
    found = replace(found, percentiles=found.percentiles[found.percentiles["run_id"] != died])
    for draw in (latency_against_rate, percentile_spectrum):
        assert "1 of 3 runs is invalid and left out" in draw(found).layout.meta["drawn"]


def test_closed_loop_runs_have_no_place_on_an_offered_rate_axis(tables):
    closed = replace(tables, runs=tables.runs.assign(closed_loop=True, offered_rate_rps=np.nan))
    assert "Nothing to draw" in latency_against_rate(closed).layout.title.text
    assert latency_against_rate(closed).layout.meta["drawn"] == "A closed loop has none."
    assert "Nothing to draw" in achieved_against_offered(closed).layout.title.text


def _closed(repeats=2, connections=(1, 2, 4, 8), workloads=("unique_put", "repeated_get")):
    found = sample_tables(
        rates=(90000.0,), connections=connections, workloads=workloads, repeats=repeats, profiled=False
    )
    passed = found.validity.assign(verdict="PASS")
    return replace(
        found,
        validity=passed,
        runs=found.runs.assign(closed_loop=True, offered_rate_rps=np.nan, verdict="PASS"),
    )


def test_a_law_is_fitted_to_each_configuration_and_never_to_two(tables):
    found = _closed(workloads=("repeated_get",), repeats=4)
    cached = replace(
        found,
        runs=found.runs.assign(
            variant=[f"cache_entries={5000 * (repeat % 2)}" for repeat in found.runs["repeat"]]
        ),
    )
    figure = scalability(cached)
    assert len([trace for trace in figure.data if trace.mode == "lines"]) == 2
    assert all(f"cache_entries={entries} σ" in figure.layout.meta["finding"] for entries in (0, 5000))
    sized = replace(
        found,
        runs=found.runs.assign(
            workload_args=[
                f'{{"value_bytes": {4096 if size < 4 else 100}}}' for size in found.runs["connections"]
            ]
        ),
    )
    assert not [trace for trace in scalability(sized).data if trace.mode == "lines"]


def test_with_too_few_numbers_of_connections_there_are_points_and_the_reason():
    figure = scalability(_closed(connections=(1, 2, 4)))
    assert not [trace for trace in figure.data if trace.mode == "lines"]
    assert figure.layout.meta["finding"] == (
        "No law is fitted: it takes 4 numbers of connections with valid runs, and none of 2 "
        "configurations has more than 3"
    )


def _falling(found, holds):
    """Rates that fall as no law's do with a rate of one connection, of the runs that ``holds``."""
    falls = 9000.0 / (found.runs["connections"] - 1)
    return replace(
        found, runs=found.runs.assign(achieved_rate_rps=found.runs["achieved_rate_rps"].mask(holds, falls))
    )


def test_rates_that_fall_faster_than_any_law_are_points_and_the_chart_says_so():
    found = _closed(connections=(2, 4, 8, 16))
    figure = scalability(_falling(found, found.runs["connections"] > 0))
    assert not [trace for trace in figure.data if trace.mode == "lines"]
    told = figure.layout.meta
    assert told["finding"] == "No law is fitted: the rate falls with the connections faster than any law"
    assert "measure a closed loop at" not in told["drawn"]
    figure = scalability(_falling(found, found.runs["workload"] == "unique_put"))
    assert len([trace for trace in figure.data if trace.mode == "lines"]) == 1
    told = figure.layout.meta["drawn"]
    assert "1 configuration without a line: the rate falls with the connections" in told
    assert "valid runs at under" not in told


def test_an_invalid_closed_loop_is_a_cross_with_a_legend_and_in_no_fit():
    found = _closed(workloads=("repeated_get",))
    bad = found.runs["connections"] == 8
    found = replace(found, runs=found.runs.assign(verdict=bad.map({True: "FAIL", False: "PASS"})))
    figure = scalability(found)
    crosses = [trace for trace in figure.data if trace.marker.symbol == "x-thin"]
    assert sorted(len(trace.x) for trace in crosses) == [1, 2] and "invalid run" in " ".join(
        trace.name or "" for trace in crosses
    )
    assert "the only configuration has 3" in figure.layout.meta["finding"]
    assert "2 of 8 runs are invalid" in figure.layout.meta["drawn"]


def test_the_axis_of_a_single_rate_has_that_rate_alone():
    one = latency_against_rate(sample_tables(rates=(1000.0,)), 99.0, "connections")
    assert list(one.layout.xaxis.tickvals) == [1000.0]
    assert latency_against_rate(sample_tables(), 99.0, "connections").layout.xaxis.tickvals is None


def test_so_has_that_of_a_panel_with_a_single_rate_beside_one_with_several():
    several = sample_tables(workloads=("unique_put", "get"))
    runs = several.runs
    some = several.only(runs.loc[(runs["workload"] == "get") | (runs["offered_rate_rps"] == 1000), "run_id"])
    figure = latency_against_rate(some, 99.0, "connections", panel_by="workload")
    assert figure.layout.xaxis.tickvals is None and list(figure.layout.xaxis2.tickvals) == [1000.0]


def test_no_rows_give_charts_that_say_so():
    for draw in (latency_against_rate, achieved_against_offered, scalability):
        assert "Nothing to draw" in draw(empty_tables()).layout.title.text
    for draw in (latency_against_rate, achieved_against_offered):
        assert draw(empty_tables()).layout.meta["drawn"] == "Nothing of this was measured yet."


def test_a_percentile_that_no_table_keeps_is_not_said_to_have_too_few_answers(five):
    def told(percentile):
        return latency_against_rate(five, percentile=percentile).layout.title.subtitle.text

    assert "Tables keep only some: 0, 10, 25, 50" in told(98.0) and "10 samples beyond" in told(99.999)
