"""Panels, axes and their ticks: readable whatever the data spans."""

import pandas as pd
import plotly.graph_objects as go
import pytest

from kvstudy.present.figures.panels import (
    TITLE_WORDS,
    latency_axis,
    nothing,
    opened,
    panel_grid,
    ratio_axis,
    titled,
)


def shown(axis, lowest: float, highest: float) -> list[str]:
    return [
        text for value, text in zip(axis.tickvals, axis.ticktext, strict=True) if lowest <= value <= highest
    ]


@pytest.mark.parametrize(
    ("lowest", "highest"),
    [(0.94, 1.08), (0.78, 1.29), (0.5, 1.6), (0.4, 7.0), (0.1, 40.0), (1e-4, 1e2), (1.02, 1.3)],
)
def test_an_axis_of_ratios_has_a_few_ticks_whatever_it_spans(lowest, highest):
    figure = go.Figure()
    ratio_axis(figure, lowest, highest, "after / before")
    ticks = shown(figure.layout.xaxis, min(lowest, 1), max(highest, 1))
    assert "1 ×" in ticks
    assert 2 <= len(ticks) <= 11


@pytest.mark.parametrize(("lowest_us", "highest_us"), [(31, 66), (44, 160), (1000, 28_000), (10, 5_000_000)])
def test_an_axis_of_latencies_has_a_few_ticks_whatever_it_spans(lowest_us, highest_us):
    figure = panel_grid([""], "offered rate", "")
    latency_axis(figure, pd.Series([lowest_us, highest_us]), "p50")
    assert 2 <= len(shown(figure.layout.yaxis, lowest_us / 1e6, highest_us / 1e6)) <= 12


def test_panels_that_share_an_axis_name_it_in_the_first_column_alone():
    figure = panel_grid(["a", "b", "c"], "offered rate", "latency")
    titled(figure, "title", "found", "drawn")
    assert [figure.layout[name].title.text for name in ("yaxis", "yaxis2", "yaxis3")] == [
        "latency",
        "",
        "latency",
    ]


def test_a_chart_opens_at_the_panel_that_is_asked_for_and_else_at_its_first():
    headings = ["get, 1 connection", "put, 1 connection", "put, 4 connections"]
    figure = opened(panel_grid(headings, "x", "y"), "put", "4 connections", "20 000 r/s")
    assert figure.layout.meta["opens"] == 2
    assert opened(panel_grid(headings, "x", "y"), "delete").layout.meta["opens"] == 0
    assert "opens" not in (opened(panel_grid([""], "x", "y"), "put").layout.meta or {})


def test_panels_with_axes_of_their_own_name_each():
    figure = panel_grid(["a", "b"], "offered rate", "latency", match_y=False)
    titled(figure, "title", "found", "drawn")
    assert [figure.layout[name].title.text for name in ("yaxis", "yaxis2")] == ["latency", "latency"]


def test_of_many_rows_of_panels_the_lowest_names_the_x_axis():
    figure = panel_grid(list("abcdefg"), "percentile", "latency")
    titled(figure, "title", "found", "drawn")
    named = [name for name, _, _ in figure.layout.meta["panels"] if figure.layout[name].title.text]
    assert named == ["xaxis6", "xaxis7"]


def test_a_title_is_short_and_the_finding_with_its_numbers_stands_below_it():
    figure = titled(panel_grid([""], "x", "y"), "Latency by rate", "p99 is 3 ms", "Points: runs.")
    assert figure.layout.title.text == "Latency by rate"
    assert figure.layout.title.subtitle.text == "p99 is 3 ms<br>Points: runs."
    assert figure.layout.meta["finding"] == "p99 is 3 ms"


def test_no_chart_can_have_a_title_of_more_words_than_are_allowed():
    with pytest.raises(AssertionError, match="title of over 12 words"):
        titled(go.Figure(), " ".join(["word"] * (TITLE_WORDS + 1)), "found")


def test_an_empty_chart_that_lacks_something_with_a_long_name_names_it_below_its_title():
    figure = nothing(" ".join(["word"] * TITLE_WORDS), "Measure some.")
    assert figure.layout.title.text == "Nothing to draw"
    assert figure.layout.meta["finding"].count("word") == TITLE_WORDS
