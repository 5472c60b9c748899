"""Rate by connections with the Universal Scalability Law fitted to it, drawn only where there is data."""

import numpy as np
import plotly.graph_objects as go

from kvstudy.analyse.scalability import fit
from kvstudy.present import theme, words
from kvstudy.present.figures.marks import marked_runs
from kvstudy.present.figures.panels import nothing, panel_grid, titled


def scalability(tables, colour_by: str = "workload") -> go.Figure:
    """Closed-loop runs: a point each, the fitted law as a line with its interval; a group under three numbers of connections has points only."""
    runs = marked_runs(tables)
    runs = runs[runs["closed_loop"] & (runs["outcome"] == "completed") & (runs["achieved_rate_rps"] > 0)]
    if runs.empty:
        return nothing("no closed-loop run", "Scalability needs rate: closed at three or more numbers of connections.")
    palette = theme.colours(colour_by, runs[colour_by])
    figure = panel_grid([""], "connections", "achieved rate, requests/s")
    told = []
    for value, hue in palette.items():
        mine = runs[runs[colour_by] == value]
        name = words.value(colour_by, value)
        figure.add_trace(
            go.Scatter(
                x=mine["connections"], y=mine["achieved_rate_rps"], mode="markers", name=name, legendgroup=name,
                marker={"color": [hue if valid else theme.INVALID for valid in mine["valid"]], "size": 7},
                text=mine["hover"], hovertemplate="%{text}<extra></extra>",
            )
        )  # fmt: skip
        counted = mine[mine["valid"]]
        if counted["connections"].nunique() < 3:
            continue
        law = fit(counted["connections"], counted["achieved_rate_rps"])
        at = np.geomspace(law.smallest, law.largest, 40)
        fitted = [law.rate_rps(connections) for connections in at]
        figure.add_trace(go.Scatter(x=at, y=[one.estimate for one in fitted], mode="lines", line={"color": hue, "width": 2.4}, legendgroup=name, showlegend=False, hoverinfo="skip"))
        figure.add_trace(
            go.Scatter(
                x=[*at, *at[::-1]], y=[*(one.high for one in fitted), *(one.low for one in reversed(fitted))], fill="toself", mode="none", fillcolor=hue,
                opacity=0.15, legendgroup=name, showlegend=False, hoverinfo="skip",
            )
        )  # fmt: skip
        peak = "no peak among the connections measured" if law.peak is None else f"its peak at {law.peak:.0f} connections"
        told.append(f"{name} σ {law.sigma.estimate:.3f} [{law.sigma.low:.3f}, {law.sigma.high:.3f}], {peak}")
    sizes = sorted(runs["connections"].unique().tolist())
    figure.update_xaxes(type="log", tickvals=sizes, ticktext=[str(size) for size in sizes])
    figure.update_yaxes(rangemode="tozero")
    finding = f"Contention by the Universal Scalability Law: {'; '.join(told)}" if told else "Too few numbers of connections to fit a law: points only"
    return titled(figure, finding, "Closed loop. Points: runs; line: fitted law with its 95 % interval; nothing is drawn past the data.")
