"""Response time by the size of the values, a line per program, or per build of one: every run a point, the
median of the valid ones a line."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse import peers, percentile_grid
from kvstudy.analyse.configuration import each_configuration
from kvstudy.analyse.medians import medians_of_repeats
from kvstudy.analyse.tables import Tables
from kvstudy.present import theme, words
from kvstudy.present.figures.panels import cell, latency_axis, nothing, panel_grid, titled

# What differs along the sizes of the values.
_ALONG = ["data", "fill"]


def by_size(found: Tables, percentile: float = 50.0, connections: int | None = None) -> go.Figure:
    """Panels of workload and rate. ``connections``: None takes the fewest that were measured."""
    runs = _points(found, percentile)
    if runs.empty:
        return nothing("nothing was measured beside the service yet", "make peers, about five minutes")
    known = sorted(runs["connections"].unique().tolist())
    chosen = known[0] if connections is None else connections
    if chosen not in known:
        return nothing(f"no run on connections={chosen!r}", f"There are: {', '.join(map(repr, known))}.")
    runs = runs[runs["connections"] == chosen]
    places = list(runs.groupby(["offered_rate_rps", "workload"]).groups)
    headings = [f"{workload} at {words.rate(rate)}" for rate, workload in places]
    figure = panel_grid(headings, "size of a value", words.percentile(percentile))
    names = peers.peers(found)
    hues: dict[str, str] = {}
    for index, (rate, workload) in enumerate(places):
        of_panel = runs[(runs["offered_rate_rps"] == rate) & (runs["workload"] == workload)]
        for server in names:
            for differs, mine in each_configuration(of_panel[of_panel["server"] == server], _ALONG):
                name = f"{server}, {differs}" if differs else server
                is_new = name not in hues
                hue = hues.setdefault(name, theme.CATEGORIES[len(hues) % len(theme.CATEGORIES)])
                _draw(figure, mine, name, hue, is_new, cell(index, len(places)))
    sizes = sorted(runs["value_bytes"].unique())
    figure.update_xaxes(type="log", tickvals=sizes, ticktext=[words.chosen_size(size) for size in sizes])
    latency_axis(figure, runs["latency_us"], words.percentile(percentile))
    return titled(
        figure,
        f"{words.percentile(percentile)} by the size of the values",
        f"{words.several(names)} on {words.value('connections', chosen)}",
        _DRAWN,
    )


_DRAWN = (
    "Every dot is a run, the line joins medians of valid ones. "
    "A cross is an invalid run, which is in no median."
)


def _points(found: Tables, percentile: float) -> pd.DataFrame:
    runs = peers.sized(found)
    points = found.percentiles[
        (found.percentiles["latency_kind"] == "response")
        & percentile_grid.at(found.percentiles["percentile"], percentile)
    ]
    joined = runs.merge(points[["run_id", "latency_us"]], on="run_id")
    return joined[(joined["latency_us"] > 0) & (joined["value_bytes"] > 0)]


def _draw(figure: go.Figure, runs: pd.DataFrame, name: str, colour: str, named: bool, place: dict) -> None:
    valid = runs["verdict"] != "FAIL"
    middle = medians_of_repeats(runs[valid], "value_bytes", "latency_us")
    figure.add_trace(
        go.Scatter(
            x=middle.index,
            y=middle / 1e6,
            mode="lines",
            line={"color": colour, "width": 2},
            name=name,
            legendgroup=name,
            showlegend=named,
            hoverinfo="skip",
        ),
        **place,
    )
    figure.add_trace(
        go.Scatter(
            x=runs["value_bytes"],
            y=runs["latency_us"] / 1e6,
            mode="markers",
            marker={
                "color": np.where(valid, colour, theme.INVALID),
                "size": 6,
                "symbol": np.where(valid, "circle", "x-thin-open"),
            },
            legendgroup=name,
            showlegend=False,
            text=[
                f"<b>{name}</b>, {words.chosen_size(row.value_bytes)}: {words.latency(row.latency_us)}, "
                f"repeat {row.repeat}"
                f"{'' if row.verdict != 'FAIL' else ', INVALID'}"
                for row in runs.itertuples()
            ],
            hovertemplate="%{text}<extra></extra>",
        ),
        **place,
    )
