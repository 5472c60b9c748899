"""Panels, axes and their ticks: readable whatever the data spans."""

import pandas as pd
import plotly.graph_objects as go
import pytest

from kvstudy.present.figures.panels import latency_axis, panel_grid, ratio_axis, titled


def shown(axis, lowest: float, highest: float) -> list[str]:
    return [text for value, text in zip(axis.tickvals, axis.ticktext, strict=True) if lowest <= value <= highest]


@pytest.mark.parametrize(("lowest", "highest"), [(0.94, 1.08), (0.78, 1.29), (0.5, 1.6), (0.4, 7.0), (0.1, 40.0), (1e-4, 1e2), (1.02, 1.3)])
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
    titled(figure, "found", "drawn")
    assert [figure.layout[name].title.text for name in ("yaxis", "yaxis2", "yaxis3")] == ["latency", "", "latency"]


def test_panels_with_axes_of_their_own_name_each():
    figure = panel_grid(["a", "b"], "offered rate", "latency", match_y=False)
    titled(figure, "found", "drawn")
    assert [figure.layout[name].title.text for name in ("yaxis", "yaxis2")] == ["latency", "latency"]
