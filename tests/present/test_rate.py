"""Latency and achieved rate against offered rate; the rule of the saturation point; throughput and
scalability by connections."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sample import empty_tables, sample_tables

from kvstudy.analyse.rates import saturation_points
from kvstudy.present import summary, theme
from kvstudy.present.figures.rate import achieved_against_offered, latency_against_rate
from kvstudy.present.figures.scalability import scalability


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


def test_no_rows_give_charts_that_say_so():
    for draw in (latency_against_rate, achieved_against_offered, scalability):
        assert "Nothing to draw" in draw(empty_tables()).layout.title.text
    for draw in (latency_against_rate, achieved_against_offered):
        assert draw(empty_tables()).layout.meta["drawn"] == "Nothing of this was measured yet."


def test_a_percentile_that_no_table_keeps_is_not_said_to_have_too_few_answers(five):
    def told(percentile):
        return latency_against_rate(five, percentile=percentile).layout.title.subtitle.text

    assert "Tables keep only some: 0, 10, 25, 50" in told(98.0) and "10 samples beyond" in told(99.999)
