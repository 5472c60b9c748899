"""Achieved rate by number of connections: how far more connections help."""

import plotly.graph_objects as go

from kvstudy.analyse.configuration import SERIES
from kvstudy.present import theme, words
from kvstudy.present.figures.marks import invalid_legend, marked_runs
from kvstudy.present.figures.panels import cell, nothing, panel_grid, titled


def throughput_by_connections(tables, colour_by: str = "workload", panel_by: str | None = None) -> go.Figure:
    """Achieved rate of the highest offered rate (or of the closed loop) by connections; a point per run, medians joined."""
    rows = marked_runs(tables)
    rows = rows[rows["achieved_rate_rps"].notna()]
    if rows.empty:
        return nothing("no run with an achieved rate", "Measure runs with notebooks/02-sweep.ipynb.")
    rows = rows.assign(panel=rows[panel_by] if panel_by else "", colour=rows[colour_by])
    if rows["closed_loop"].any():
        rows, which = rows[rows["closed_loop"]], "Closed loop: each connection sends as soon as it was answered."
    else:
        top = rows.groupby(["panel", "colour", "connections"])["offered_rate_rps"].transform("max")
        rows, which = rows[rows["offered_rate_rps"] == top], "At the highest offered rate of each group."
    palette = theme.colours(colour_by, rows["colour"])
    panels = sorted(rows["panel"].unique())
    figure = panel_grid([words.value(panel_by or "", panel) for panel in panels], "connections", "achieved rate, requests/s")
    for index, panel in enumerate(panels):
        for colour, hue in palette.items():
            runs = rows[(rows["panel"] == panel) & (rows["colour"] == colour)]
            # A saturated run did not hold its rate, which is FAIL for latencies; what it achieved is still what it achieved.
            xs, ys = [], []
            for _, series in runs.groupby(SERIES, sort=False):
                medians = series.groupby("connections")["achieved_rate_rps"].median()
                xs += [*medians.index, None]
                ys += [*medians, None]
            name = words.value(colour_by, colour)
            figure.add_trace(
                go.Scatter(
                    x=xs or [None], y=ys or [None], mode="lines", name=name, legendgroup=name, showlegend=index == 0,
                    line={"color": hue, "width": 2.4}, hoverinfo="skip",
                ),
                **cell(index, len(panels)),
            )  # fmt: skip
            figure.add_trace(
                go.Scatter(
                    x=runs["connections"], y=runs["achieved_rate_rps"], mode="markers", legendgroup=name, showlegend=False,
                    marker={"color": [hue if valid else theme.INVALID for valid in runs["valid"]], "size": 7, "opacity": 0.75,
                            "symbol": ["circle" if valid else "x" for valid in runs["valid"]]},
                    text=[f"<b>{words.rate(run.achieved_rate_rps)}</b><br>{run.hover}" for run in runs.itertuples()],
                    hovertemplate="%{text}<extra></extra>",
                ),
                **cell(index, len(panels)),
            )  # fmt: skip
    if not rows["valid"].all():
        invalid_legend(figure, **cell(0, len(panels)))
    sizes = sorted(rows["connections"].unique().tolist())
    figure.update_xaxes(type="log", tickvals=sizes, ticktext=[str(size) for size in sizes])
    figure.update_yaxes(rangemode="tozero")
    return titled(figure, _gain(rows, colour_by, panel_by), f"{which} Points: runs; line: median.")


def _gain(rows, colour_by: str, panel_by: str | None) -> str:
    medians = rows.groupby(["panel", "colour", "connections"], as_index=False)["achieved_rate_rps"].median()
    best = medians.loc[medians["achieved_rate_rps"].idxmax()]
    line = medians[(medians["panel"] == best["panel"]) & (medians["colour"] == best["colour"])].sort_values("connections")
    name = words.value(colour_by, best["colour"]) + (f", {words.value(panel_by, best['panel'])}" if panel_by else "")
    finding = f"Highest median: {name} with {words.rate(best['achieved_rate_rps'])} on {words.value('connections', best['connections'])}"
    if len(line) > 1 and line["connections"].iloc[0] != best["connections"]:
        ratio = best["achieved_rate_rps"] / line["achieved_rate_rps"].iloc[0]
        finding += f", {words.times(ratio)} that of {words.value('connections', line['connections'].iloc[0])}"
    return finding
