"""Percentile spectra: the axis, the medians, the runs that do not count."""

from dataclasses import replace

import numpy as np
import pytest
from sample import empty_tables, keep

from kvstudy.present import theme
from kvstudy.present.figures.spectrum import percentile_spectrum, response_against_service


def _named(figure, name):
    return [trace for trace in figure.data if trace.name == name and trace.x[0] is not None]


def test_the_axis_is_one_over_one_minus_p(tables):
    axis = percentile_spectrum(tables).layout.xaxis
    assert axis.type == "log"
    assert dict(zip(axis.ticktext, axis.tickvals, strict=True))["99 %"] == pytest.approx(100)
    assert dict(zip(axis.ticktext, axis.tickvals, strict=True))["99.9 %"] == pytest.approx(1000)


def test_the_median_line_is_the_median_over_the_valid_repeats(tables):
    one = keep(tables, lambda run: run.connections == 4 and run.workload == "unique_put" and run.offered_rate_rps == 1000)
    line = next(trace for trace in percentile_spectrum(one).data if trace.line.width == 2.6)
    points = one.percentiles.query("latency_kind == 'response' and percentile == 99")
    at_99 = [y for x, y in zip(line.x, line.y, strict=True) if x is not None and np.isclose(x, 100)]
    assert at_99 == [pytest.approx(points["latency_us"].median() / 1e6, rel=1e-3)]


def test_runs_that_differ_in_more_than_the_colour_share_no_median(tables):
    both = keep(tables, lambda run: run.workload == "unique_put" and run.offered_rate_rps == 1000)
    median = [trace for trace in percentile_spectrum(both).data if trace.line.width == 2.6]
    assert np.isnan(median[0].x).sum() == 2  # 1 and 4 connections: two lines, each ended by a gap


def test_an_invalid_run_is_grey_dotted_says_why_and_is_in_no_median(tables):
    figure = percentile_spectrum(keep(tables, lambda run: run.offered_rate_rps == 16000))
    thin = [trace for trace in figure.data if trace.legendgroup == "invalid" and trace.text is not None]
    assert {(trace.line.color, trace.line.dash) for trace in thin} == {(theme.INVALID, "dot")}
    assert all("FAIL rate_held" in trace.hovertemplate for trace in thin)
    assert all(np.isnan(trace.x).all() for trace in figure.data if trace.line.width == 2.6)
    assert figure.layout.meta["finding"].startswith("No valid run")


def test_a_percentile_that_may_not_be_printed_is_not_drawn(tables):
    figure = percentile_spectrum(keep(tables, lambda run: run.offered_rate_rps == 1000))
    assert max(x for trace in figure.data for x in trace.x if x is not None) < 10000


def test_points_with_few_samples_beyond_are_open_circles(tables):
    figure = percentile_spectrum(keep(tables, lambda run: run.offered_rate_rps == 1000))
    sizes = set(figure.data[0].marker.size)
    assert sizes == {0, 5}
    assert figure.data[0].marker.symbol == "circle-open"


def test_the_title_is_computed_from_the_rows(tables):
    faster = tables.percentiles.assign(latency_us=tables.percentiles["latency_us"] / 10)
    changed = replace(tables, percentiles=faster)
    assert percentile_spectrum(tables).layout.meta["finding"] != percentile_spectrum(changed).layout.meta["finding"]


def test_response_and_service_time_stand_in_one_chart(tables):
    figure = response_against_service(tables)
    assert {"response", "service"} <= {trace.name for trace in figure.data}


def test_no_rows_give_a_chart_that_says_so():
    assert "Nothing to draw" in percentile_spectrum(empty_tables()).layout.title.text
    assert "Nothing to draw" in response_against_service(empty_tables()).layout.title.text


def test_drawing_changes_no_table(tables):
    before = tables.runs.copy()
    percentile_spectrum(tables, panel_by="workload")
    assert tables.runs.equals(before)


def test_a_schedule_and_a_closed_loop_stand_in_panels_that_are_named(tables):
    runs = tables.runs.assign(closed_loop=[index % 2 == 0 for index in range(len(tables.runs))])
    figure = response_against_service(replace(tables, runs=runs), panel_by="closed_loop")
    assert [heading.text for heading in figure.layout.annotations[:2]] == ["on a schedule", "closed loop"]


def test_closed_loops_are_drawn_behind_the_highest_rate(tables):
    """A missing rate is equal to nothing, not even to itself: such runs had no line, and took a colour of the ramp for each of their points."""
    closed = replace(tables, runs=tables.runs.assign(offered_rate_rps=tables.runs["offered_rate_rps"].where(tables.runs["offered_rate_rps"] < 4000)))
    assert closed.runs["offered_rate_rps"].isna().any()
    figure = percentile_spectrum(closed)
    named = [trace for trace in figure.data if trace.showlegend and trace.mode == "lines"]
    assert [trace.name for trace in named][-1] == "closed loop" and len(named) == closed.runs["offered_rate_rps"].nunique() + 1
    assert any(value is not None for value in named[-1].x)
    assert named[-1].line.color == theme.RAMP[-1]
