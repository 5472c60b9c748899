"""Latency and achieved rate against offered rate; the rule of the saturation point; throughput by connections."""

from dataclasses import replace

import numpy as np
import pandas as pd
from sample import empty_tables, keep

from kvstudy.present import theme
from kvstudy.present.figures.rate import achieved_against_offered, latency_against_rate, saturation_points
from kvstudy.present.figures.throughput import throughput_by_connections


def _runs(pairs):
    return pd.DataFrame(
        [{"group": "g", "closed_loop": False, "offered_rate_rps": offered, "achieved_rate_rps": achieved} for offered, achieved in pairs]
    )


def test_saturation_is_the_lowest_rate_whose_median_is_under_99_percent():
    point = saturation_points(_runs([(1000, 1000), (2000, 1979), (2000, 1981), (2000, 1985), (4000, 3000)]), ["group"]).iloc[0]
    assert (point["highest_held_rps"], point["saturation_rps"]) == (2000, 4000)


def test_a_rate_held_above_the_saturation_point_does_not_count():
    point = saturation_points(_runs([(1000, 1000), (2000, 1500), (4000, 4000)]), ["group"]).iloc[0]
    assert (point["highest_held_rps"], point["saturation_rps"]) == (1000, 2000)


def test_no_saturation_is_made_up_where_every_rate_was_held():
    point = saturation_points(_runs([(1000, 1000), (2000, 2000)]), ["group"]).iloc[0]
    assert point["highest_held_rps"] == 2000
    assert np.isnan(point["saturation_rps"])


def test_the_saturation_point_is_drawn_in_every_panel(tables):
    figure = latency_against_rate(tables, panel_by="workload")
    assert {shape.x0 for shape in figure.layout.shapes} == {16000.0}
    assert {shape.xref for shape in figure.layout.shapes} == {"x", "x2"}


def test_every_run_is_a_point_and_invalid_ones_are_crosses(tables):
    figure = latency_against_rate(tables)
    points = [trace for trace in figure.data if trace.mode == "markers"]
    assert sum(len(trace.x) for trace in points) == len(tables.runs)
    crosses = [trace for trace in points if trace.marker.symbol == "x-thin"]
    assert sum(len(trace.x) for trace in crosses) == (tables.runs["verdict"] == "FAIL").sum()
    assert crosses[0].marker.line.color == theme.INVALID


def test_the_finding_names_the_rate_that_was_held(tables):
    assert "held 4\u202f000 r/s" in latency_against_rate(tables, panel_by="workload").layout.meta["finding"]


def test_achieved_rate_stands_against_the_diagonal(tables):
    assert "achieved = offered" in {trace.name for trace in achieved_against_offered(tables).data}


def test_closed_loop_runs_have_no_place_on_an_offered_rate_axis(tables):
    closed = replace(tables, runs=tables.runs.assign(closed_loop=True, offered_rate_rps=np.nan))
    assert "Nothing to draw" in latency_against_rate(closed).layout.title.text
    assert "Nothing to draw" in achieved_against_offered(closed).layout.title.text


def test_throughput_joins_the_medians_over_connections(tables):
    figure = throughput_by_connections(keep(tables, lambda run: run.workload == "unique_put"))
    top = tables.runs.query("workload == 'unique_put' and offered_rate_rps == 16000")
    expected = top.groupby("connections")["achieved_rate_rps"].median()
    line = figure.data[0]
    assert list(line.x[:2]) == expected.index.tolist()
    assert np.allclose(line.y[:2], expected)


def test_no_rows_give_charts_that_say_so():
    for draw in (latency_against_rate, achieved_against_offered, throughput_by_connections):
        assert "Nothing to draw" in draw(empty_tables()).layout.title.text
