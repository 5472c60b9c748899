"""Published numbers beside measured ones."""

import textwrap

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.present import claims, theme, words
from kvstudy.present.figures.marks import marked_runs
from kvstudy.present.figures.panels import cell, latency_axis, nothing, panel_grid, percentile_axis, shortened, titled

_COLOURS = {
    claims.REPRODUCED: theme.GREEN, claims.NOT_REPRODUCED: theme.VERMILION, claims.MISTAKEN: theme.PURPLE, claims.UNPROVEN: theme.OCHRE,
    claims.CANNOT_TELL: theme.QUIET_TEXT, claims.NOT_MEASURED: theme.AXIS,
}  # fmt: skip
_SYMBOLS = {claims.REPRODUCED: "circle", claims.NOT_REPRODUCED: "x", claims.MISTAKEN: "diamond", claims.UNPROVEN: "square", claims.CANNOT_TELL: "circle-open"}
ROW_PX = 26
NAME_LETTERS = 62


def claims_measured(judged: pd.DataFrame) -> go.Figure:
    """One row per claim that has a number of ours: measured / published with its interval; colour and shape say the verdict."""
    rows = judged[judged["measured"].notna() & (judged["published"] > 0) & (judged["measured"] > 0)].iloc[::-1]
    counts = judged["verdict"].value_counts()
    finding = f"{len(judged)} claims of five reports: {words.several([f'{counts[verdict]} {verdict}' for verdict in claims.VERDICTS if verdict in counts])}"
    if rows.empty:
        return titled(nothing("no claim has a number of ours", "Measure experiments/report-1.yaml … report-5.yaml."), finding, "")
    names = [textwrap.shorten(f"{row.report}: {row.method}, {row.says}", NAME_LETTERS, placeholder=" …") for row in rows.itertuples()]
    names = [name if names.count(name) == 1 else f"{name} ({claim})" for name, claim in zip(names, rows["claim"], strict=True)]
    figure = go.Figure()
    for verdict in claims.VERDICTS:
        mine = (rows["verdict"] == verdict).to_numpy()
        if not mine.any():
            continue
        part = rows[mine]
        ratio, low, high = (part[column] / part["published"] for column in ("measured", "low", "high"))
        figure.add_trace(
            go.Scatter(
                x=ratio, y=[name for name, chosen in zip(names, mine, strict=True) if chosen], mode="markers", name=verdict,
                marker={"color": _COLOURS[verdict], "symbol": _SYMBOLS.get(verdict, "circle"), "size": 10},
                error_x={"type": "data", "symmetric": False, "array": (high - ratio).fillna(0), "arrayminus": (ratio - low).fillna(0), "thickness": 1.5, "width": 4},
                text=[
                    f"<b>{row.verdict}</b>: {row.says}<br>published {claims.number(row.quantity, row.published)}, measured "
                    f"{claims.number(row.quantity, row.measured)} ({row.runs} runs)<br>{row.note}"
                    for row in part.itertuples()
                ],
                hovertemplate="%{text}<extra></extra>",
            )
        )  # fmt: skip
    figure.add_vrect(x0=1 / claims.FACTOR, x1=claims.FACTOR, fillcolor=theme.GRID, opacity=0.5, line_width=0, layer="below")
    figure.update_xaxes(type="log", title_text="measured / published (log)", exponentformat="power")
    figure.update_yaxes(categoryorder="array", categoryarray=names, title_text="")
    figure.update_layout(height=200 + ROW_PX * len(names), legend_y=-70 / (ROW_PX * len(names) + 60))
    return titled(figure, finding, "Shaded: within a factor of two. A mistaken claim is judged by its own report's output; the distance is shown all the same.")


def published_spectra(published, tables, report: int, percentile_max: float = 99.999) -> go.Figure:
    """The latency distributions that a report printed, and our valid runs of the experiment that asks the same; one panel per method."""
    texts = published.results[(published.results["report"] == report)]
    points = published.percentiles.merge(texts, on="text")
    points = points[(points["percentile"] < 100) & (points["percentile"] <= percentile_max) & (points["latency_us"] > 0)].sort_values(["text", "percentile"])
    ours = tables.select(experiment=f"report-{report}", profiled=False)
    rows = ours.percentiles[(ours.percentiles["latency_kind"] == "response") & (ours.percentiles["percentile"] < 100)].dropna(subset=["latency_us"])
    rows = rows.merge(marked_runs(ours), on="run_id") if len(rows) else rows
    if points.empty:
        return nothing(f"report {report} printed no distribution", "")
    methods = sorted(points["method"].unique())
    figure = panel_grid(methods if len(methods) > 1 else [""], "percentile", "latency")
    for index, method in enumerate(methods):
        place = cell(index, len(methods))
        for number, (_, line) in enumerate(points[points["method"] == method].groupby("text")):
            first = line.iloc[0]
            line = line.drop_duplicates("percentile")
            kind = "service time, closed loop" if first["closed_loop"] else "response time"
            offered = words.value("offered_rate_rps", float(first["offered_rate_rps"]) if pd.notna(first["offered_rate_rps"]) else np.nan)
            figure.add_trace(
                go.Scatter(
                    x=shortened(100 / (100 - line["percentile"])), y=shortened(line["latency_us"] / 1e6), mode="lines", name="published", legendgroup="published",
                    showlegend=index == 0 and number == 0, line={"color": theme.NAMED["published"], "width": 2.2, "dash": "dash" if first["closed_loop"] else "solid"},
                    text=[words.percentile(round(value, 4)) for value in line["percentile"]],
                    hovertemplate=f"<b>published</b> %{{text}}: %{{y:.3s}}s ({kind})<br>{first['text']}, offered {offered}<extra></extra>",
                ),
                **place,
            )  # fmt: skip
        for number, (_, line) in enumerate(rows[rows["method"] == method].groupby("run_id") if len(rows) else []):
            valid = bool(line["valid"].iloc[0])
            figure.add_trace(
                go.Scatter(
                    x=shortened(100 / (100 - line["percentile"])), y=shortened(line["latency_us"] / 1e6), mode="lines", name="measured", legendgroup="measured",
                    showlegend=index == 0 and number == 0, opacity=0.7, hovertemplate=f"<b>measured</b> %{{y:.3s}}s<br>{line['hover'].iloc[0]}<extra></extra>",
                    line={"color": theme.NAMED["measured"] if valid else theme.INVALID, "width": 1.2, "dash": "solid" if valid else "dot"},
                ),
                **place,
            )  # fmt: skip
    percentile_axis(figure, percentile_max)
    latency_axis(figure, pd.concat([points["latency_us"], rows["latency_us"]]) if len(rows) else points["latency_us"], "latency (log)")
    return titled(figure, _median_ratio(points, rows, report), "Published: one run each, as printed. Measured: each of our runs. Dashed: a closed loop, whose times hide the waiting.")


def _median_ratio(points: pd.DataFrame, rows: pd.DataFrame, report: int) -> str:
    ours = rows[rows["valid"] & np.isclose(rows["percentile"], 50)] if len(rows) else rows
    theirs = points[np.isclose(points["percentile"], 50)]
    if ours.empty or theirs.empty:
        return f"Report {report}: its distributions, with no valid run of ours beside them yet"
    return (
        f"Report {report}: its median is {words.latency(theirs['latency_us'].min())} to {words.latency(theirs['latency_us'].max())}, ours "
        f"{words.latency(ours['latency_us'].min())} to {words.latency(ours['latency_us'].max())}"
    )
