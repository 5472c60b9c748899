"""Latency and achieved rate against offered rate, and the saturation point by a written rule.

Saturation point of a group of runs: the lowest offered rate at which the median achieved rate over its repeats is under 99 % of
the offered one. None when every offered rate was achieved: the capacity then lies above the data, and nothing is extrapolated.
"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse.configuration import SERIES
from kvstudy.present import theme, words
from kvstudy.present.figures.marks import excluded, invalid_legend, marked_runs
from kvstudy.present.figures.panels import cell, latency_axis, nothing, panel_grid, titled

ACHIEVED_SHARE_MIN = 0.99


def saturation_points(runs: pd.DataFrame, group_by: list[str]) -> pd.DataFrame:
    """One row per group of open-loop runs: the group's columns, ``highest_held_rps`` and ``saturation_rps`` (NaN where none).

    ``highest_held_rps`` is the highest offered rate below the saturation point that was achieved.
    """
    open_loop = runs[~runs["closed_loop"]]
    medians = open_loop.groupby([*group_by, "offered_rate_rps"], as_index=False)["achieved_rate_rps"].median()
    medians["held"] = medians["achieved_rate_rps"] >= ACHIEVED_SHARE_MIN * medians["offered_rate_rps"]
    rows = []
    for key, group in medians.groupby(group_by):
        lost = group.loc[~group["held"], "offered_rate_rps"]
        saturation = lost.min() if len(lost) else np.nan
        held = group.loc[group["held"] & ~(group["offered_rate_rps"] >= saturation), "offered_rate_rps"]
        rows.append([*key, held.max() if len(held) else np.nan, saturation])
    return pd.DataFrame(rows, columns=[*group_by, "highest_held_rps", "saturation_rps"])


def latency_against_rate(
    tables, percentile: float = 99.0, colour_by: str = "connections", panel_by: str | None = None, latency_kind: str = "response"
) -> go.Figure:
    """Latency at ``percentile`` against offered rate: a point per run, a line through the medians, dashed at saturation."""
    points = tables.percentiles
    points = points[(points["latency_kind"] == latency_kind) & np.isclose(points["percentile"], percentile)]
    rows = marked_runs(tables).query("not closed_loop").merge(points, on="run_id")
    rows = rows[rows["latency_us"].notna()].assign(y=lambda row: row["latency_us"] / 1e6)
    if rows.empty:
        return nothing(f"no open-loop run has {words.percentile(percentile)}", "It needs 10 samples beyond the percentile.")
    rows["told"] = [f"{words.percentile(percentile)} <b>{words.latency(latency)}</b>" for latency in rows["latency_us"]]
    figure, saturation = _draw(rows, colour_by, panel_by)
    latency_axis(figure, rows["latency_us"], f"{words.percentile(percentile)} {words.kind(latency_kind)} (log)")
    drawn = (
        f"Points: runs; line: median of valid repeats; dashed line: saturation point (median achieved under 99 % of offered)."
        f"{excluded(rows)}"
    )
    return titled(figure, _held(rows, saturation, colour_by, panel_by, percentile), drawn)


def achieved_against_offered(tables, colour_by: str = "connections", panel_by: str | None = None) -> go.Figure:
    """Achieved against offered rate; on the diagonal the service kept up."""
    rows = marked_runs(tables).query("not closed_loop")
    rows = rows[rows["achieved_rate_rps"].notna()].assign(y=lambda row: row["achieved_rate_rps"])
    if rows.empty:
        return nothing("no open-loop run", "A closed loop has no offered rate.")
    rows["told"] = [f"achieved <b>{words.rate(rate)}</b>" for rate in rows["y"]]
    figure, saturation = _draw(rows, colour_by, panel_by)
    top = rows["offered_rate_rps"].max()
    count = rows[panel_by].nunique() if panel_by else 1
    for index in range(count):
        figure.add_trace(
            go.Scatter(
                x=[0, top], y=[0, top], mode="lines", name="achieved = offered", legendgroup="diagonal", showlegend=index == 0,
                line={"color": theme.AXIS, "dash": "dash", "width": 1}, hoverinfo="skip",
            ),
            **cell(index, count),
        )  # fmt: skip
    figure.update_yaxes(title_text="achieved rate, requests/s", rangemode="tozero")
    figure.update_xaxes(rangemode="tozero")
    return titled(
        figure,
        _held(rows, saturation, colour_by, panel_by, None),
        f"Points: runs; line: median of valid repeats. A run below the diagonal did not keep up.{excluded(rows)}",
    )


def _draw(rows: pd.DataFrame, colour_by: str, panel_by: str | None) -> tuple[go.Figure, pd.DataFrame]:
    rows = rows.assign(panel=rows[panel_by] if panel_by else "", colour=rows[colour_by])
    palette = theme.colours(colour_by, rows["colour"])
    panels = sorted(rows["panel"].unique())
    figure = panel_grid([words.value(panel_by or "", panel) for panel in panels], "offered rate, requests/s", "")
    saturation = saturation_points(rows[rows["speaks"]], ["panel", "colour"])
    for index, panel in enumerate(panels):
        place = cell(index, len(panels))
        for colour, hue in palette.items():
            mine = rows[(rows["panel"] == panel) & (rows["colour"] == colour)].sort_values("offered_rate_rps")
            _group(figure, mine, colour_by, colour, hue, index == 0, place)
        for point in saturation[(saturation["panel"] == panel) & saturation["saturation_rps"].notna()].itertuples():
            figure.add_vline(
                x=point.saturation_rps, line={"color": palette[point.colour], "dash": "dash", "width": 1.2}, **place
            )
    if not rows["valid"].all():
        invalid_legend(figure, **cell(0, len(panels)))
    return figure, saturation


def _group(figure: go.Figure, runs: pd.DataFrame, colour_by: str, colour, hue: str, named: bool, place: dict) -> None:
    name = words.value(colour_by, colour)
    valid = runs[runs["valid"]]
    xs, ys = [], []
    for _, repeats in valid.groupby([*SERIES, "connections", "threads"], sort=False):
        medians = repeats.groupby("offered_rate_rps")["y"].median()
        xs += [*medians.index, None]
        ys += [*medians, None]
    figure.add_trace(
        go.Scatter(
            x=xs or [None], y=ys or [None], mode="lines", name=name, legendgroup=name, showlegend=named,
            line={"color": hue, "width": 2.4}, hoverinfo="skip",
        ),
        **place,
    )  # fmt: skip
    for part, marker in (
        (valid, {"color": hue, "size": 7, "opacity": 0.75}),
        (runs[~runs["valid"]], {"symbol": "x-thin", "size": 8, "line": {"width": 1.8, "color": theme.INVALID}}),
    ):
        if len(part):
            figure.add_trace(
                go.Scatter(
                    x=part["offered_rate_rps"], y=part["y"], mode="markers", marker=marker, showlegend=False,
                    legendgroup=name if marker.get("color") == hue else "invalid",
                    text=[f"{told}<br>{hover}" for told, hover in zip(part["told"], part["hover"], strict=True)],
                    hovertemplate="%{text}<extra></extra>",
                ),
                **place,
            )  # fmt: skip


def _held(rows: pd.DataFrame, saturation: pd.DataFrame, colour_by: str, panel_by: str | None, percentile: float | None) -> str:
    """The finding: the best held rate, what saturates above it, and what the latency is there."""
    if saturation.empty or saturation["highest_held_rps"].isna().all():
        return "No offered rate was held: every group is past its saturation point at its lowest rate"
    best = saturation.loc[saturation["highest_held_rps"].idxmax()]
    group = words.value(colour_by, best["colour"])
    if panel_by is not None:
        group = f"{words.value(panel_by, best['panel'])}, {group}"
    latency = ""
    if percentile is not None:
        here = rows[(rows[colour_by] == best["colour"]) & (rows["offered_rate_rps"] == best["highest_held_rps"]) & rows["valid"]]
        if panel_by is not None:
            here = here[here[panel_by] == best["panel"]]
        if len(here):
            latency = f" with {words.percentile(percentile)} {words.latency(here['latency_us'].median())}"
    above = (
        "no offered rate saturated it"
        if np.isnan(best["saturation_rps"])
        else f"{words.rate(best['saturation_rps'])} saturates it"
    )
    return f"{group} held {words.rate(best['highest_held_rps'])}{latency}; {above}"
